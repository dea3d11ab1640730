class ApplicationController < ActionController::Base
  include Authentication
  include ErrorHandling

  protect_from_forgery with: :exception
end
