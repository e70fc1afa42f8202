// One launch for each optimizer step, whatever the number of runs: a block of the grid reads its
// numbers from a table.
#include "kernels/cuda/device.cuh"
#include "kernels/optimizer/cuda_step_launch.h"

namespace stretto::kernels::cuda {
namespace {

template <class Numbers, class Body>
__global__ void each_element(const Run<Numbers>* blocks, Body body) {
  const Run<Numbers> block = blocks[blockIdx.x];
  for (int64_t i = block.begin + threadIdx.x; i < block.end; i += kThreads) body(i, block.numbers);
}

/// body(i, numbers) returns the pair of values whose squares are summed.
template <class Numbers, class Body>
__global__ void sum_elements(const Run<Numbers>* blocks, Body body, SquareSums* sums) {
  const Run<Numbers> block = blocks[blockIdx.x];
  double weight = 0, update = 0;
  for (int64_t i = block.begin + threadIdx.x; i < block.end; i += kThreads) {
    const float2 pair = body(i, block.numbers);
    weight += static_cast<double>(pair.x) * pair.x;
    update += static_cast<double>(pair.y) * pair.y;
  }
  weight = block_sum(weight);
  update = block_sum(update);
  if (threadIdx.x == 0) {
    sums[blockIdx.x].weight = weight;
    sums[blockIdx.x].update = update;
  }
}

template <class Numbers, class Body>
void launch(const StepTable<Numbers>& table, const Body& body) {
  if (table.count == 0) return;
  each_element<<<static_cast<unsigned>(table.count), kThreads, 0, table.stream>>>(table.blocks,
                                                                                  body);
}

template <class Numbers, class Body>
void launch_sum(const StepTable<Numbers>& table, const Body& body, SquareSums* sums) {
  if (table.count == 0) return;
  sum_elements<<<static_cast<unsigned>(table.count), kThreads, 0, table.stream>>>(table.blocks,
                                                                                  body, sums);
}

struct Adam {
  float* p;
  const float* g;
  float *m, *v;
  __device__ void operator()(int64_t i, const AdamScalars& s) const {
    const float weight = p[i];
    const float slope = g[i] * s.grad_scale + s.coupled_decay * weight;
    const float first = averaged(m[i], slope, s.first);
    const float second = averaged(v[i], slope * slope, s.second);
    m[i] = first;
    v[i] = second;
    p[i] = weight * s.shrink -
           s.step_size * first / (sqrtf(second) * s.inverse_root_correction + s.epsilon);
  }
};

struct Momentum {
  float* p;
  const float* g;
  float* u;
  __device__ void operator()(int64_t i, const MomentumScalars& s) const {
    const float d = g[i] * s.grad + s.decay * p[i];
    const float velocity = s.carry * u[i] + s.gain * d;
    u[i] = velocity;
    p[i] -= s.ahead * d + s.look * velocity;
  }
};

struct Adagrad {
  float* p;
  const float* g;
  float* sum;
  __device__ void operator()(int64_t i, const AdagradScalars& s) const {
    const float d = g[i] * s.grad + s.decay * p[i];
    const float total = sum[i] + d * d;
    sum[i] = total;
    p[i] -= s.rate * d / (sqrtf(total) + s.epsilon);
  }
};

struct Ftrl {
  float* p;
  const float* g;
  float *sum, *linear;
  __device__ void operator()(int64_t i, const FtrlScalars& s) const {
    const float weight = p[i], d = g[i] * s.grad + s.decay * weight;
    const float before = sqrtf(s.accumulator + sum[i]) * s.inverse_rate_before;
    const float total = sum[i] + d * d;
    const float now = sqrtf(s.accumulator + total) * s.inverse_rate;
    const float z = linear[i] + d - (now - before) * weight;
    sum[i] = total;
    linear[i] = z;
    const float shrunk = z > s.l1 ? z - s.l1 : z < -s.l1 ? z + s.l1 : 0.0f;
    p[i] = (0.0f - shrunk) / (now + s.l2);
  }
};

struct Rmsprop {
  float* p;
  const float* g;
  float *v, *u;
  __device__ void operator()(int64_t i, const RmspropScalars& s) const {
    const float d = g[i] * s.grad + s.decay * p[i];
    const float second = averaged(v[i], d * d, s.second);
    const float velocity = s.momentum * u[i] + d / (sqrtf(second) + s.epsilon);
    v[i] = second;
    u[i] = velocity;
    p[i] -= s.rate * velocity;
  }
};

__device__ inline float lamb_update(float p, float m, float v, const LambScalars& s) {
  return s.inverse_correction * m / (sqrtf(v) * s.inverse_root_correction + s.epsilon) +
         s.decay * p;
}

struct LambMoments {
  const float *p, *g;
  float *m, *v;
  __device__ float2 operator()(int64_t i, const LambScalars& s) const {
    const float slope = g[i] * s.grad;
    const float first = averaged(m[i], slope, s.first);
    const float second = averaged(v[i], slope * slope, s.second);
    m[i] = first;
    v[i] = second;
    return {p[i], lamb_update(p[i], first, second, s)};
  }
};

struct LambApply {
  float* p;
  const float *m, *v;
  __device__ void operator()(int64_t i, const LambScalars& s) const {
    p[i] -= s.rate * lamb_update(p[i], m[i], v[i], s);
  }
};

struct Directions {
  const float *p, *g;
  __device__ float2 operator()(int64_t i, const NormScalars& s) const {
    return {p[i], g[i] * s.grad + s.decay * p[i]};
  }
};

}  // namespace

void step_adam(const StepTable<AdamScalars>& table, float* p, const float* g, float* m, float* v) {
  launch(table, Adam{p, g, m, v});
}
void step_momentum(const StepTable<MomentumScalars>& table, float* p, const float* g, float* u) {
  launch(table, Momentum{p, g, u});
}
void step_adagrad(const StepTable<AdagradScalars>& table, float* p, const float* g, float* sum) {
  launch(table, Adagrad{p, g, sum});
}
void step_ftrl(const StepTable<FtrlScalars>& table, float* p, const float* g, float* sum,
               float* linear) {
  launch(table, Ftrl{p, g, sum, linear});
}
void step_rmsprop(const StepTable<RmspropScalars>& table, float* p, const float* g, float* v,
                  float* u) {
  launch(table, Rmsprop{p, g, v, u});
}
void step_lamb(const StepTable<LambScalars>& table, float* p, const float* m, const float* v) {
  launch(table, LambApply{p, m, v});
}
void sum_lamb(const StepTable<LambScalars>& table, const float* p, const float* g, float* m,
              float* v, SquareSums* sums) {
  launch_sum(table, LambMoments{p, g, m, v}, sums);
}
void sum_squares(const StepTable<NormScalars>& table, const float* p, const float* g,
                 SquareSums* sums) {
  launch_sum(table, Directions{p, g}, sums);
}

}  // namespace stretto::kernels::cuda
