require "test_helper"

# expects: newest_first in app/models/blog/post.rb
# expects: paginate in app/controllers/concerns/pagination.rb
# expects: require_login in app/controllers/concerns/authentication.rb
class Blog::PostsControllerTest < ActionDispatch::IntegrationTest
  test "the list is open to everyone" do
    get posts_path
    assert_template "blog/posts/index"
  end

  test "a post is open to everyone" do
    get post_path(posts(:first))
    assert_template "blog/posts/show"
  end

  test "writing needs a login" do
    get new_post_path
    assert_redirected_to new_session_path
  end

  test "a post without a title is shown again" do
    sign_in users(:ann)
    post posts_path, params: { post: { title: "" } }
    assert_template "blog/posts/new"
  end
end
