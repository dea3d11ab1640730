# Tells the author of a post about a new comment.
class Blog::CommentNotifier
  def initialize(comment)
    @comment = comment
  end

  def deliver
    return if own_post?

    Blog::CommentMailer.with(comment: @comment).created.deliver_later
  end

  private

  def own_post?
    @comment.user == @comment.post.user
  end
end
