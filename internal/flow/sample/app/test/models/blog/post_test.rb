require "test_helper"

# expects: summary in app/models/blog/post.rb
class Blog::PostTest < ActiveSupport::TestCase
  test "a summary is short" do
    assert_operator Blog::Post.new(body: "x" * 900).summary.length, :<=, 200
  end
end
