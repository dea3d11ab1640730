class Blog::Comment < ApplicationRecord
  belongs_to :post
  belongs_to :user

  validates :body, presence: true

  scope :pending, -> { where(approved: false) }

  def approve
    update(approved: true)
  end
end
