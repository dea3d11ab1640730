require "test_helper"

# expects: sign_in in app/controllers/concerns/authentication.rb
# expects: sign_out in app/controllers/concerns/authentication.rb
class Accounts::SessionsControllerTest < ActionDispatch::IntegrationTest
  test "a wrong password shows the form again" do
    post session_path, params: { email: users(:ann).email, password: "wrong" }
    assert_template "accounts/sessions/new"
  end

  test "the right password leads home" do
    post session_path, params: { email: users(:ann).email, password: "secret" }
    assert_redirected_to root_path
  end
end
