class User < ApplicationRecord
  has_secure_password
  has_many :posts, class_name: "Blog::Post"
  has_many :comments, class_name: "Blog::Comment"

  validates :email, presence: true, uniqueness: true

  def display_name
    name.presence || email
  end
end
