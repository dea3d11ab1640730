class Blog::Post < ApplicationRecord
  belongs_to :user
  has_many :comments

  validates :title, presence: true

  scope :newest_first, -> { order(created_at: :desc) }

  def summary
    body.truncate(200)
  end
end
