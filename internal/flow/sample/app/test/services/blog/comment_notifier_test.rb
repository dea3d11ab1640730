require "test_helper"

# expects: deliver in app/services/blog/comment_notifier.rb
class Blog::CommentNotifierTest < ActiveSupport::TestCase
  test "nobody is told of a comment of their own" do
    assert_nil Blog::CommentNotifier.new(comments(:own)).deliver
  end
end
