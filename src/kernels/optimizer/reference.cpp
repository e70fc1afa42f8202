#include "kernels/optimizer/reference.h"

#include <ATen/ATen.h>

namespace stretto::kernels::reference {
namespace {

template <class Numbers>
at::Tensor part(const at::Tensor& flat, const Run<Numbers>& run) {
  return flat.narrow(0, run.begin, run.end - run.begin);
}

at::Tensor direction(const at::Tensor& p, const at::Tensor& g, double grad, double decay) {
  return g * grad + p * decay;
}

double squares(const at::Tensor& x) {
  return x.to(at::kDouble).square().sum().item<double>();
}

void average(at::Tensor average, const at::Tensor& x, const MovingAverage& a) {
  const double gain = a.gain;
  average.mul_(static_cast<double>(a.keep) + static_cast<double>(a.keep_rest)).add_(x, gain);
}

at::Tensor lamb_update(const at::Tensor& p, const at::Tensor& m, const at::Tensor& v,
                       const LambScalars& s) {
  return m * s.inverse_correction / (v.sqrt() * s.inverse_root_correction + s.epsilon) +
         p * s.decay;
}

}  // namespace

void adam_runs(at::Tensor& params, const at::Tensor& grads, at::Tensor& exp_avg,
               at::Tensor& exp_avg_sq, std::span<const Run<AdamScalars>> runs) {
  const at::NoGradGuard no_grad;
  for (const auto& run : runs) {
    const AdamScalars& s = run.numbers;
    at::Tensor p = part(params, run), m = part(exp_avg, run), v = part(exp_avg_sq, run);
    const at::Tensor g = direction(p, part(grads, run), s.grad_scale, s.coupled_decay);
    average(m, g, s.first);
    average(v, g * g, s.second);
    p.mul_(s.shrink).addcdiv_(m, v.sqrt().mul_(s.inverse_root_correction).add_(s.epsilon),
                              -s.step_size);
  }
}

void momentum_runs(at::Tensor& params, const at::Tensor& grads, at::Tensor& velocity,
                   std::span<const Run<MomentumScalars>> runs) {
  const at::NoGradGuard no_grad;
  for (const auto& run : runs) {
    const MomentumScalars& s = run.numbers;
    at::Tensor p = part(params, run), u = part(velocity, run);
    const at::Tensor d = direction(p, part(grads, run), s.grad, s.decay);
    u.mul_(s.carry).add_(d, s.gain);
    p.sub_(d * s.ahead + u * s.look);
  }
}

void adagrad_runs(at::Tensor& params, const at::Tensor& grads, at::Tensor& sum,
                  std::span<const Run<AdagradScalars>> runs) {
  const at::NoGradGuard no_grad;
  for (const auto& run : runs) {
    const AdagradScalars& s = run.numbers;
    at::Tensor p = part(params, run), total = part(sum, run);
    const at::Tensor d = direction(p, part(grads, run), s.grad, s.decay);
    total.addcmul_(d, d);
    p.addcdiv_(d, total.sqrt().add_(s.epsilon), -s.rate);
  }
}

void ftrl_runs(at::Tensor& params, const at::Tensor& grads, at::Tensor& sum, at::Tensor& linear,
               std::span<const Run<FtrlScalars>> runs) {
  const at::NoGradGuard no_grad;
  for (const auto& run : runs) {
    const FtrlScalars& s = run.numbers;
    at::Tensor p = part(params, run), total = part(sum, run), z = part(linear, run);
    const at::Tensor d = direction(p, part(grads, run), s.grad, s.decay);
    const at::Tensor before = (total + s.accumulator).sqrt_().mul_(s.inverse_rate_before);
    total.addcmul_(d, d);
    const at::Tensor now = (total + s.accumulator).sqrt_().mul_(s.inverse_rate);
    z.add_(d).sub_((now - before) * p);
    const at::Tensor shrunk = (z - s.l1).clamp_min_(0) + (z + s.l1).clamp_max_(0);
    p.copy_(-shrunk / (now + s.l2));
  }
}

void rmsprop_runs(at::Tensor& params, const at::Tensor& grads, at::Tensor& square_avg,
                  at::Tensor& velocity, std::span<const Run<RmspropScalars>> runs) {
  const at::NoGradGuard no_grad;
  for (const auto& run : runs) {
    const RmspropScalars& s = run.numbers;
    at::Tensor p = part(params, run), v = part(square_avg, run), u = part(velocity, run);
    const at::Tensor d = direction(p, part(grads, run), s.grad, s.decay);
    average(v, d * d, s.second);
    u.mul_(s.momentum).addcdiv_(d, v.sqrt().add_(s.epsilon));
    p.sub_(u, s.rate);
  }
}

std::vector<SquareSums> lamb_moments(const at::Tensor& params, const at::Tensor& grads,
                                     at::Tensor& exp_avg, at::Tensor& exp_avg_sq,
                                     std::span<const Run<LambScalars>> runs) {
  const at::NoGradGuard no_grad;
  std::vector<SquareSums> sums;
  for (const auto& run : runs) {
    const LambScalars& s = run.numbers;
    const at::Tensor p = part(params, run), m = part(exp_avg, run), v = part(exp_avg_sq, run);
    const at::Tensor g = part(grads, run) * s.grad;
    average(m, g, s.first);
    average(v, g * g, s.second);
    sums.push_back({squares(p), squares(lamb_update(p, m, v, s))});
  }
  return sums;
}

void lamb_apply(at::Tensor& params, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
                std::span<const Run<LambScalars>> runs) {
  const at::NoGradGuard no_grad;
  for (const auto& run : runs) {
    at::Tensor p = part(params, run);
    p.sub_(lamb_update(p, part(exp_avg, run), part(exp_avg_sq, run), run.numbers),
           run.numbers.rate);
  }
}

std::vector<SquareSums> squares_of_runs(const at::Tensor& params, const at::Tensor& grads,
                                        std::span<const Run<NormScalars>> runs) {
  const at::NoGradGuard no_grad;
  std::vector<SquareSums> sums;
  for (const auto& run : runs) {
    const at::Tensor p = part(params, run);
    sums.push_back(
        {squares(p), squares(direction(p, part(grads, run), run.numbers.grad, run.numbers.decay))});
  }
  return sums;
}

}  // namespace stretto::kernels::reference
