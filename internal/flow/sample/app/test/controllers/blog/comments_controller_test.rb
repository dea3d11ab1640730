require "test_helper"

# expects: pending in app/models/blog/comment.rb
# expects: approve in app/models/blog/comment.rb
# expects: deliver in app/services/blog/comment_notifier.rb
# expects: require_owner in app/controllers/concerns/authentication.rb
class Blog::CommentsControllerTest < ActionDispatch::IntegrationTest
  test "the thread is open to everyone" do
    get post_comments_path(posts(:first))
    assert_template "blog/comments/index"
  end

  test "commenting needs a login" do
    post post_comments_path(posts(:first)), params: { comment: { body: "Nice." } }
    assert_redirected_to new_session_path
  end

  test "what waits for approval is listed" do
    sign_in users(:ann)
    get pending_comments_path
    assert_template "blog/comments/pending"
  end
end
