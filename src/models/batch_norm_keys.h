#pragma once

#include "config/field.h"

namespace stretto::models {

template <class Owner>
auto norm_momentum_field() {
  return config::field(
             &Owner::norm_momentum, "norm_momentum",
             "share of a batch in the running statistics of batch norms, PyTorch's convention: a "
             "momentum of 0.9 in TensorFlow or in a paper is 0.1 here",
             {.min = 0, .max = 1, .min_open = true, .choices = {}})
      .also_called({"bn_momentum", "batch_norm_momentum"})
      .also_called({"batch_norm_decay", "bn_decay"}, "1 - the decay");
}

template <class Owner>
auto norm_epsilon_field() {
  return config::field(
             &Owner::norm_epsilon, "norm_epsilon", "added to each variance of batch norms",
             {.min = 0, .max = 0.1, .min_open = true, .choices = {}}, {.hidden_in_shapes = true})
      .also_called({"bn_eps", "bn_epsilon", "batch_norm_epsilon", "norm_eps"});
}

/// Both, of a model that always has batch norms.
template <class Owner>
auto batch_norm_fields() {
  return config::Fields{norm_momentum_field<Owner>(), norm_epsilon_field<Owner>()};
}

}  // namespace stretto::models
