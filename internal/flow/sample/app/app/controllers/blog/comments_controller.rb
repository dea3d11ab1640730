class Blog::CommentsController < ApplicationController
  include Pagination

  before_action :require_login, except: [:index]
  before_action :find_post, only: [:index, :create]
  before_action :find_comment, only: [:edit, :update, :approve]

  def index
    @comments = paginate(@post.comments)
  end

  def create
    @comment = @post.comments.new(comment_params)
    @comment.user = current_user
    if @comment.save
      Blog::CommentNotifier.new(@comment).deliver
      redirect_to @post, notice: "Thank you."
    else
      render :index, status: :unprocessable_entity
    end
  end

  def edit
    require_owner(@comment)
  end

  def update
    if @comment.update(comment_params)
      redirect_to @comment.post, notice: "Saved."
    else
      render :edit, status: :unprocessable_entity
    end
  end

  def pending
    @comments = Blog::Comment.pending
  end

  def approve
    @comment.approve
    redirect_to pending_comments_path
  end

  private

  def find_post
    @post = Blog::Post.find(params[:post_id])
  end

  def find_comment
    @comment = Blog::Comment.find(params[:id])
  end

  def comment_params
    params.require(:comment).permit(:body)
  end
end
