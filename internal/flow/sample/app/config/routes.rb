Rails.application.routes.draw do
  root "blog/posts#index"

  scope module: "blog" do
    resources :posts do
      resources :comments, only: [:index, :create]
    end

    resources :comments, only: [:edit, :update] do
      get :pending, on: :collection
      post :approve, on: :member
    end
  end

  scope module: "accounts" do
    resource :session, only: [:new, :create, :destroy]
    resource :registration, only: [:new, :create, :edit, :update]
  end
end
