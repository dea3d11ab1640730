# The page that a user sees when a record is missing.
module ErrorHandling
  extend ActiveSupport::Concern

  included do
    rescue_from ActiveRecord::RecordNotFound, with: :render_not_found
  end

  private

  def render_not_found
    render "shared/not_found", status: :not_found
  end
end
