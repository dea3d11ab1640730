require "test_helper"

# expects: display_name in app/models/user.rb
class UserTest < ActiveSupport::TestCase
  test "without a name the email is shown" do
    assert_equal "ann@example.org", User.new(email: "ann@example.org").display_name
  end
end
