require "test_helper"

# expects: sign_in in app/controllers/concerns/authentication.rb
# expects: display_name in app/models/user.rb
class Accounts::RegistrationsControllerTest < ActionDispatch::IntegrationTest
  test "an account needs an email" do
    post registration_path, params: { user: { name: "Ann" } }
    assert_template "accounts/registrations/new"
  end

  test "changing the account needs a login" do
    get edit_registration_path
    assert_redirected_to new_session_path
  end
end
