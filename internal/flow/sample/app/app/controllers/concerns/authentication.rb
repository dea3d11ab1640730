# Who is asking, and whether that is enough.
module Authentication
  extend ActiveSupport::Concern

  included do
    before_action :load_current_user
    helper_method :current_user, :signed_in?
  end

  private

  def load_current_user
    @current_user = User.find_by(id: session[:user_id])
  end

  def current_user
    @current_user
  end

  def signed_in?
    current_user.present?
  end

  def require_login
    return if signed_in?

    redirect_to new_session_path, alert: "Please sign in."
  end

  def require_owner(record)
    return if record.user == current_user

    redirect_to root_path, alert: "That is not yours."
  end

  def sign_in(user)
    session[:user_id] = user.id
  end

  def sign_out
    session.delete(:user_id)
  end
end
