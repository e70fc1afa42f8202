#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"

namespace stretto::optim {

/// `[optim]`
struct OptimOptions {
  std::string name = "adam";
  double lr = 5e-4;
  int64_t reference_batch = 0;
  std::string lr_scaling = "none";
  double beta1 = 0.9;
  double beta2 = 0.98;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double momentum = 0.9;
  bool nesterov = false;
  double clip_norm = 0;
  double gradient_noise = 0;
  double gradient_noise_decay = 0.55;
  double weight_noise = 0;
  std::vector<std::string> weight_noise_tensors;
  std::string momentum_form = "rate_outside";
  std::string radam_start = "momentum";
  double trust_coefficient = 0.001;
  std::string larc_mode = "clip";
  double larc_eta = 0;
  bool grad_averaging = false;
  double l1 = 0;
  double l2 = 0;
  double initial_accumulator = 0.1;
  std::string ftrl_start = "weights";
  std::vector<std::string> lazy_tables;
  double muon_momentum = 0.95;
  bool muon_nesterov = true;
  std::string muon_scale = "rms";
  double muon_adam_lr = 0;
  std::vector<std::string> muon_adam_tensors;
  bool muon_split = true;
  bool muon_fixed_norm = false;
  int64_t muon_iterations = 5;
  std::string muon_precision = "auto";
  std::string muon_others = "adamw";
  double muon_other_momentum = 0.9;
  std::vector<std::string> no_decay;
  std::vector<std::string> groups;
  double layer_decay = 1;

  /// Optimizers whose gradients larc_eta bounds: not lars and larc, which bound steps themselves.
  static std::vector<std::string> bounded_by_larc_eta() {
    return {"adam",     "adamw",   "lazy_adam", "radam",     "lamb", "sgd",
            "novograd", "adagrad", "rmsprop",   "adafactor", "ftrl"};
  }
  bool bounds_gradients() const {
    const auto bounded = bounded_by_larc_eta();
    return larc_eta != 0 && std::find(bounded.begin(), bounded.end(), name) != bounded.end();
  }

  static auto fields() {
    using namespace config;
    using O = OptimOptions;
    return Fields{
        field(&O::name, "name",
              "adam adds weight decay to the gradient; adamw, radam, lamb and adafactor take "
              "it off the weight. lars, larc and novograd are sgd with a rate for each tensor. "
              "lazy_adam is adam that leaves rows of embeddings without a gradient as they are. "
              "muon makes the step of a hidden matrix orthogonal; the rest it leaves to adamw",
              one_of({"adam", "adamw", "radam", "lamb", "sgd", "lars", "larc", "novograd",
                      "adagrad", "rmsprop", "adafactor", "ftrl", "lazy_adam", "muon"}))
            .also_called({"type", "optimizer", "optimizer_type", "optimizer_name", "optim",
                          "train.optim", "algorithm"})
            .value_also_called("adamw", {"adamw_torch", "adamw_hf", "adamw_torch_fused", "adam_w"})
            .value_also_called("adam", {"fused_adam", "adam_pytorch", "apex_adam"})
            .value_also_called("sgd", {"momentum", "sgdm"})
            .value_also_called("sgd", {"nag", "nesterov"}, "with optim.nesterov = true")
            .value_also_called("radam", {"rectified_adam"})
            .value_also_called("lamb", {"fused_lamb"})
            .value_also_called("ftrl", {"ftrl_proximal", "follow_the_regularized_leader"})
            .value_also_called("lazy_adam", {"sparse_adam"}),
        field(&O::lr, "lr", "peak learning rate; with lr_scaling: at a batch of reference_batch",
              greater(0))
            .also_called({"learning_rate", "learn_rate", "base_lr", "peak_lr", "step_size"}),
        field(&O::reference_batch, "reference_batch",
              "batch that lr was chosen for: train.update_freq times the bound of a micro-batch",
              at_least(0))
            .read_with("lr_scaling", {"linear", "sqrt"})
            .also_called({"mini_batch_words_ref", "reference_batch_size", "base_batch_size"}),
        field(&O::lr_scaling, "lr_scaling",
              "lr for another batch: in proportion (linear), to the root of it (sqrt), or as it is",
              one_of({"none", "linear", "sqrt"}))
            .also_called({"scale_lr", "linear_scaling"})
            .value_also_called("linear", {"linear_scaling"})
            .value_also_called("sqrt", {"square_root", "root"})
            .value_also_called("none", {"off", "false"}),
        field(&O::beta1, "beta1",
              "decay of the first moment (adam, adamw, lazy_adam, radam, lamb; novograd, usually "
              "0.95; muon, of what adamw steps)",
              fraction())
            .read_with("name", {"adam", "adamw", "lazy_adam", "radam", "lamb", "novograd", "muon"})
            .also_called({"adam_beta1"})
            .also_called({"adam_betas", "betas"}, "beta1 and beta2 are keys of their own")
            .also_called({"optimizer_params"}, "beta1, beta2 and epsilon are keys of their own"),
        field(&O::beta2, "beta2",
              "decay of the second moment (adam, adamw, lazy_adam, radam, lamb, novograd, rmsprop; "
              "muon, of what adamw steps)",
              fraction())
            .read_with("name", {"adam", "adamw", "lazy_adam", "radam", "lamb", "novograd",
                                "rmsprop", "muon"})
            .also_called({"adam_beta2", "alpha_rmsprop"}),
        field(&O::epsilon, "epsilon", "keeps the divisor above zero", greater(0))
            .read_with("name", {"adam", "adamw", "radam", "lamb", "novograd", "adagrad", "rmsprop",
                                "lazy_adam", "muon"})
            .also_called({"adam_eps", "adam_epsilon", "eps"}),
        field(&O::weight_decay, "weight_decay", "see no_decay for where it does not act",
              at_least(0))
            .also_called({"wd", "decay", "l2_regularization", "regularization"}),
        field(&O::momentum, "momentum", "of sgd, lars, larc and rmsprop", fraction())
            .read_with("name", {"sgd", "lars", "larc", "rmsprop"})
            .also_called({"momentum_factor", "sgd_momentum"}),
        field(&O::nesterov, "nesterov", "look-ahead form of the momentum of sgd, lars and larc")
            .read_with("name", {"sgd", "lars", "larc"}),
        field(&O::clip_norm, "clip_norm",
              "gradients are scaled down to this global norm; 0 = never", at_least(0))
            .also_called({"clip", "clip_grad_norm", "max_grad_norm", "grad_clip", "gradient_clip",
                          "gradient_clip_val", "gradient_clipping", "max_norm", "grad_norm_clip"}),
        field(
            &O::gradient_noise, "gradient_noise",
            "variance of Gaussian noise on each element of the mean gradient, before clipping, in "
            "the first step; 0 = none; 0.01, 0.3 and 1 are usual",
            at_least(0))
            .also_called({"grad_noise", "gradient_noise_eta"}),
        field(&O::gradient_noise_decay, "gradient_noise_decay",
              "in step t, from 0, the variance is gradient_noise / (1 + t)^gradient_noise_decay",
              at_least(0))
            .also_called({"gradient_noise_gamma"})
            .read_unless_zero("gradient_noise"),
        field(&O::weight_noise, "weight_noise",
              "standard deviation of Gaussian noise on weights while an update runs forward "
              "and backward; 0 = none, 0.075 is Graves' for recurrent networks. The step "
              "itself, validation and checkpoints have the weights without it",
              at_least(0))
            .also_called({"variational_noise", "param_variational_noise"}),
        field(
            &O::weight_noise_tensors, "weight_noise_tensors",
            "name patterns of the tensors that weight_noise is for; empty = all of two dimensions "
            "or more, neither biases nor gains of norms")
            .read_unless_zero("weight_noise"),
        field(&O::momentum_form, "momentum_form",
              "rate_outside: velocity sums gradients; rate_inside: it sums steps, and is corrected "
              "whenever the rate changes (sgd, lars, larc); both train alike",
              one_of({"rate_outside", "rate_inside"}))
            .read_with("name", {"sgd", "lars", "larc"}),
        field(&O::radam_start, "radam_start",
              "what radam does in its first updates, before the variance can be trusted",
              one_of({"momentum", "none"}))
            .read_with("name", {"radam"}),
        field(&O::trust_coefficient, "trust_coefficient",
              "of lars and larc: step of a tensor as a share of its norm", greater(0))
            .read_with("name", {"lars", "larc"}),
        field(&O::larc_mode, "larc_mode",
              "clip: never a larger step than plain sgd; scale: always in proportion to the norm",
              one_of({"clip", "scale"}))
            .read_with("name", {"larc"}),
        field(&O::larc_eta, "larc_eta",
              "before a step, no tensor's gradient is longer than this share of the weight's norm, "
              "over lr: OpenSeq2Seq's LARC (usually 0.001) in front of any optimizer; 0 = off",
              at_least(0))
            .also_called({"larc_params"}, "larc_eta is a key of its own")
            .read_with("name", bounded_by_larc_eta()),
        field(&O::grad_averaging, "grad_averaging",
              "novograd: a new gradient weighs 1 - beta1 in the velocity instead of 1")
            .read_with("name", {"novograd"}),
        field(&O::l1, "l1", "of ftrl: pulls weights to exactly zero; spares what no_decay covers",
              at_least(0))
            .read_with("name", {"ftrl"})
            .also_called({"l1_regularization_strength", "l1_regularization"}),
        field(&O::l2, "l2",
              "of ftrl: makes weights smaller, but none zero; spares what no_decay covers",
              at_least(0))
            .read_with("name", {"ftrl"})
            .also_called({"l2_regularization_strength"}),
        field(&O::initial_accumulator, "initial_accumulator",
              "of ftrl: what each sum of squared gradients begins with", greater(0))
            .read_with("name", {"ftrl"})
            .also_called({"initial_accumulator_value"}),
        field(&O::ftrl_start, "ftrl_start",
              "of ftrl: weights: the first update steps from the weights as they are; zero: "
              "initial_accumulator pulls them to zero first, as in TensorFlow",
              one_of({"weights", "zero"}))
            .read_with("name", {"ftrl"}),
        field(&O::lazy_tables, "lazy_tables",
              "of lazy_adam: name patterns of the matrices of which it steps only rows with a "
              "gradient; empty = \"*embedding.weight\". One that is the output projection too "
              "has a gradient in every row")
            .read_with("name", {"lazy_adam"}),
        field(&O::muon_momentum, "muon_momentum",
              "of muon: decay of the moving average of a matrix's gradients", fraction())
            .read_with("name", {"muon"}),
        field(&O::muon_nesterov, "muon_nesterov",
              "of muon: the average looks ahead, by the gradient of this update")
            .read_with("name", {"muon"}),
        field(&O::muon_scale, "muon_scale",
              "of muon: factor of the step of a matrix [rows, columns] beside lr. rms: 0.2 "
              "sqrt(max(rows, columns)), a step as large as adamw's; spectral: sqrt(max(1, rows / "
              "columns)), usual with lr = 0.02",
              one_of({"rms", "spectral"}))
            .read_with("name", {"muon"}),
        field(&O::muon_adam_lr, "muon_adam_lr",
              "of muon: lr of what adamw or sgd steps, with the same schedule; 0 = lr", at_least(0))
            .read_with("name", {"muon"}),
        field(&O::muon_adam_tensors, "muon_adam_tensors",
              "of muon: name patterns of the matrices that muon_others steps, as it does all "
              "vectors; "
              "empty = embeddings, positions and distances, output projections and heads")
            .read_with("name", {"muon"}),
        field(&O::muon_split, "muon_split",
              "of muon: a matrix that merges several maps (query, key and value; gates) is made "
              "orthogonal map by map")
            .read_with("name", {"muon"}),
        field(&O::muon_fixed_norm, "muon_fixed_norm",
              "of muon: before each step a matrix is scaled to the norm sqrt(rows), which stands "
              "for a weight decay (airbench); for matrices in front of a norm")
            .read_with("name", {"muon"}),
        field(&O::muon_iterations, "muon_iterations",
              "of muon: steps of the iteration that makes a matrix orthogonal; airbench has 3",
              between(1, 100))
            .read_with("name", {"muon"}),
        field(&O::muon_precision, "muon_precision",
              "of muon: products of the iteration; auto: bf16 on a GPU, fp32 on a CPU",
              one_of({"auto", "fp32", "bf16"}))
            .read_with("name", {"muon"}),
        field(&O::muon_others, "muon_others",
              "of muon: what steps vectors and the matrices of muon_adam_tensors; sgd: with "
              "Nesterov's momentum, and weight decay added to the gradient",
              one_of({"adamw", "sgd"}))
            .read_with("name", {"muon"}),
        field(&O::muon_other_momentum, "muon_other_momentum",
              "of muon: the momentum of what sgd steps", fraction())
            .read_with("muon_others", {"sgd"}),
        field(
            &O::no_decay, "no_decay",
            "name patterns of tensors without weight decay (* and ? as in a shell); empty = all of "
            "one dimension (biases, norms); \"none\" alone = no tensor")
            .also_called({"no_weight_decay", "exclude_from_weight_decay", "no_decay_params"}),
        field(&O::groups, "groups",
              "\"PATTERN lr_scale=X weight_decay=Y\": settings of matching tensors, first "
              "match wins. weight_decay leaves out what no_decay names, unless PATTERN matches "
              "nothing else. lars, larc and lamb spare the rate of what no_decay names, not of "
              "a group with weight_decay=0")
            .also_called({"param_groups", "parameter_groups"}),
        field(&O::layer_decay, "layer_decay",
              "each layer's rate as a share of that of the layer above it; 1 = all alike, 0.65 "
              "to 0.95 is usual in fine-tuning. A head keeps lr, the last layer has lr times "
              "this, embeddings the smallest; lr_scale of groups multiplies them",
              Range{.min = 0, .max = 1, .min_open = true, .choices = {}})
            .also_called({"layerwise_lr_decay", "layer_wise_lr_decay", "llrd", "lr_layer_decay",
                          "layerwise_learning_rate_decay", "layer_lr_decay",
                          "discriminative_fine_tuning"}),
    };
  }
};

/// The peak learning rate: `lr` scaled from `reference_batch` to a `batch` of the same unit, as
/// `lr_scaling` says (Goyal et al. 2017, arXiv:1706.02677, section 2.1).
inline double peak_learning_rate(const OptimOptions& options, double batch) {
  if (options.reference_batch <= 0 || options.lr_scaling == "none") return options.lr;
  const double ratio = batch / static_cast<double>(options.reference_batch);
  return options.lr * (options.lr_scaling == "sqrt" ? std::sqrt(ratio) : ratio);
}

/// `[schedule]`: learning rate as a function of the update.
struct ScheduleOptions {
  std::string name = "inverse_sqrt";
  int64_t warmup_steps = 4000;
  double warmup_ratio = 0;
  double warmup_init_lr = 1e-7;
  double min_lr = 0;
  int64_t total_steps = 0;
  double power = 1.0;
  std::string warmup = "gradual";
  int64_t begin_steps = 0;
  std::vector<double> boundaries;
  std::vector<double> multipliers;
  int64_t decay_steps = 1000;
  double decay_rate = 0.1;
  bool staircase = false;
  int64_t period_steps = 5000;
  double period_growth = 1;
  double period_shrink = 0.1;
  config::Retired<int64_t> d_model{.value = 512};
  double max_lr = 0;
  int64_t hold_steps = 0;
  double final_scale = 0.01;
  int64_t patience = 0;
  double threshold = 1e-4;

  /// Whether the curve decays to an end: it then depends on where that is.
  bool decays_to_an_end() const {
    return name == "linear" || name == "cosine" || name == "polynomial" || name == "tri_stage";
  }
  /// Whether the number of updates shapes the rate.
  bool needs_length() const { return decays_to_an_end() || warmup_ratio > 0; }
  /// Updates of the warm-up in a run of so many: warmup_steps, or warmup_ratio of them, rounded up
  /// as Hugging Face does.
  int64_t warmup_updates(int64_t total_steps) const {
    if (warmup_ratio <= 0) return warmup_steps;
    return static_cast<int64_t>(std::ceil(static_cast<double>(total_steps) * warmup_ratio));
  }
  /// The key that says how long the warm-up is.
  const char* warmup_key() const {
    return warmup_ratio > 0 ? "schedule.warmup_ratio" : "schedule.warmup_steps";
  }
  /// Updates at the full rate between warm-up and decay, which tri_stage alone has.
  int64_t held_updates() const { return name == "tri_stage" ? hold_steps : 0; }
  /// The update, from 0, at which the decay begins in a run of so many.
  int64_t decay_begin(int64_t total_steps) const {
    return std::max(warmup_updates(total_steps), begin_steps) + held_updates();
  }
  /// Updates that the schedule is made for: total_steps, or without it the train.max_steps of its
  /// run; 0 when both are 0.
  int64_t length(int64_t max_steps) const { return total_steps > 0 ? total_steps : max_steps; }

  static auto fields() {
    using namespace config;
    using O = ScheduleOptions;
    return Fields{
        field(
            &O::name, "name", "shape after the warm-up; fixed and constant are one",
            one_of({"constant", "fixed", "piecewise", "step", "exponential", "polynomial", "linear",
                    "cosine", "cosine_restarts", "inverse_sqrt", "noam", "tri_stage", "plateau"}))
            .also_called({"type", "lr_scheduler", "lr_scheduler_type", "scheduler", "lr_schedule",
                          "decay_method", "lr_policy", "train.schedule"})
            .also_called({"lr_decay_inv_sqrt"}, "= \"inverse_sqrt\"")
            .value_also_called("inverse_sqrt", {"inverse_square_root", "isr", "inv_sqrt", "rsqrt"})
            .value_also_called("polynomial", {"polynomial_decay", "poly"})
            .value_also_called("linear", {"linear_with_warmup"})
            .value_also_called("cosine", {"cosine_with_warmup", "cosine_annealing"})
            .value_also_called("cosine_restarts",
                               {"cosine_with_restarts", "cosine_annealing_warm_restarts"})
            .value_also_called("constant", {"constant_with_warmup", "none", "flat"})
            .value_also_called("plateau", {"reduce_lr_on_plateau", "reduce_on_plateau"})
            .value_also_called("step", {"step_lr"})
            .value_also_called("piecewise", {"multi_step", "multi_step_lr", "multifactor"})
            .value_also_called("exponential", {"exp", "exponential_decay"})
            .value_also_called("noam", {"vaswani", "transformer"})
            .value_also_called("tri_stage", {"trapezoidal"}),
        field(&O::warmup_steps, "warmup_steps", "rise from warmup_init_lr to optim.lr", at_least(0),
              {.unit = "updates"})
            .also_called({"warmup_updates", "num_warmup_steps", "lr_warmup", "warmup_iters"})
            .also_called({"warmup_epochs"}, "in updates"),
        field(&O::warmup_ratio, "warmup_ratio",
              "the same as a share of all updates, rounded up: of total_steps, train.max_steps or "
              "those of train.max_epochs; instead of warmup_steps; 0 = not used",
              fraction())
            .also_called({"warmup_proportion", "warmup_fraction", "pct_start"}),
        field(&O::warmup_init_lr, "warmup_init_lr",
              "learning rate of update 0; a constant warm-up wants one of its own", at_least(0))
            .also_called({"warmup_start_rate", "lr_warmup_start_rate", "init_lr"})
            .read_with("name", {"constant", "fixed", "piecewise", "step", "exponential",
                                "polynomial", "linear", "cosine", "cosine_restarts", "inverse_sqrt",
                                "tri_stage", "plateau"})
            .read_with("warmup", {"constant"}),
        field(&O::min_lr, "min_lr",
              "floor after the warm-up, and the end of linear, cosine and polynomial", at_least(0))
            .also_called({"end_learning_rate", "stop_min_lr", "lr_min", "final_lr", "eta_min"})
            .read_with("name",
                       {"piecewise", "step", "exponential", "polynomial", "linear", "cosine",
                        "cosine_restarts", "inverse_sqrt", "noam", "tri_stage", "plateau"}),
        field(&O::total_steps, "total_steps",
              "update at which linear, cosine, polynomial and tri_stage end; 0 = train.max_steps, "
              "or without it the last of train.max_epochs",
              at_least(0), {.unit = "updates"})
            .also_called({"total_num_update", "total_num_steps", "num_training_steps",
                          "max_decay_steps", "lr_decay_iters"})
            .read_with("name", {"polynomial", "linear", "cosine", "tri_stage"})
            .read_unless_zero("warmup_ratio"),
        field(&O::power, "power", "of polynomial", greater(0)).read_with("name", {"polynomial"}),
        field(&O::warmup, "warmup",
              "gradual: a line of warmup_steps updates; constant: warmup_init_lr until they end",
              one_of({"gradual", "constant"}))
            .also_called({"warmup_type", "warmup_method"})
            .value_also_called("gradual", {"linear", "line"})
            .value_also_called("constant", {"flat"}),
        field(&O::begin_steps, "begin_steps",
              "the decay begins here if that is later than the warm-up's end", at_least(0),
              {.unit = "updates"})
            .also_called({"start_decay_steps", "begin_decay_at"})
            .read_with("name", {"step", "exponential", "polynomial", "linear", "cosine",
                                "cosine_restarts", "tri_stage"}),
        field(&O::boundaries, "boundaries", "of piecewise, ascending: where the rate changes",
              at_least(0), {.unit = "updates"})
            .also_called({"milestones"})
            .read_with("name", {"piecewise"}),
        field(&O::multipliers, "multipliers",
              "of piecewise, one for each boundary: times optim.lr from there on", at_least(0))
            .read_with("name", {"piecewise"}),
        field(&O::decay_steps, "decay_steps", "of step and exponential", at_least(1),
              {.unit = "updates"})
            .also_called({"step_size", "lr_step_size"})
            .read_with("name", {"step", "exponential"}),
        field(&O::decay_rate, "decay_rate",
              "of step, exponential (per decay_steps) and plateau (per reduction)", greater(0))
            .also_called({"gamma", "lr_shrink", "lr_decay", "learning_rate_decay", "factor"})
            .read_with("name", {"step", "exponential", "plateau"}),
        field(&O::staircase, "staircase", "exponential in steps instead of a curve")
            .read_with("name", {"exponential"}),
        field(&O::period_steps, "period_steps", "of cosine_restarts: its first period", at_least(1),
              {.unit = "updates"})
            .also_called({"lr_period_updates", "t_0"})
            .read_with("name", {"cosine_restarts"}),
        field(&O::period_growth, "period_growth",
              "of cosine_restarts: each period is so many times longer", at_least(1))
            .also_called({"t_mult"})
            .read_with("name", {"cosine_restarts"}),
        field(&O::period_shrink, "period_shrink",
              "of cosine_restarts: each period's rates are so many times the last one's",
              greater(0))
            .read_with("name", {"cosine_restarts"}),
        retired(&O::d_model, "d_model", "noam has the width from the model"),
        field(&O::max_lr, "max_lr", "of noam: never above; 0 = no limit", at_least(0))
            .read_with("name", {"noam"}),
        field(&O::hold_steps, "hold_steps", "of tri_stage: at the peak, before the decay",
              at_least(0), {.unit = "updates"})
            .read_with("name", {"tri_stage"}),
        field(&O::final_scale, "final_scale", "of tri_stage: last rate as a share of optim.lr",
              greater(0))
            .also_called({"final_lr_scale"})
            .read_with("name", {"tri_stage"}),
        field(&O::patience, "patience",
              "of plateau: validations without progress that are forgiven before a reduction",
              at_least(0))
            .also_called({"lr_patience"})
            .read_with("name", {"plateau"}),
        field(&O::threshold, "threshold",
              "of plateau: progress is a validation loss this share below the best", at_least(0))
            .also_called({"lr_threshold"})
            .read_with("name", {"plateau"}),
    };
  }
};

}  // namespace stretto::optim
