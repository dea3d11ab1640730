# Long lists, a page at a time.
module Pagination
  extend ActiveSupport::Concern

  private

  def page_number
    params[:page].to_i
  end

  def paginate(records, per_page: 20)
    records.offset(page_number * per_page).limit(per_page)
  end
end
