class Blog::PostsController < ApplicationController
  include Pagination

  before_action :require_login, except: [:index, :show]
  before_action :find_post, only: [:show, :edit, :update, :destroy]
  before_action :check_owner, only: [:edit, :update, :destroy]

  def index
    @posts = paginate(Blog::Post.newest_first)
  end

  def show
    @comments = @post.comments
  end

  def new
    @post = Blog::Post.new
  end

  def create
    @post = current_user.posts.new(post_params)
    if @post.save
      redirect_to @post, notice: "Published."
    else
      render :new, status: :unprocessable_entity
    end
  end

  def edit
  end

  def update
    if @post.update(post_params)
      redirect_to @post, notice: "Saved."
    else
      render :edit, status: :unprocessable_entity
    end
  end

  def destroy
    @post.destroy
    redirect_to posts_path, notice: "Deleted."
  end

  private

  def find_post
    @post = Blog::Post.find(params[:id])
  end

  def check_owner
    require_owner(@post)
  end

  def post_params
    params.require(:post).permit(:title, :body)
  end
end
