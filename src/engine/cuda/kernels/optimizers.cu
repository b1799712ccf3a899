// AdamW (Loshchilov and Hutter 2019, algorithm 2) and SGD with momentum (Polyak 1964), weight decay decoupled in both:
//
//   adamw: m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
//          p = p - lr (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon) + weight_decay p)
//   sgd:   m = b1 m + g;  p = p - lr (m + weight_decay p)
//
// With a control, t counts the updates that were done, g is multiplied by its factor, and a factor of 0 updates
// nothing.
#include "cuda/kernels/elements.h"

namespace krigtune::cuda {
namespace {

/// Read on the device: the host does not know whether this step overflows.
class UpdateControl {
 public:
  UpdateControl(const DeviceCall& call, std::size_t group)
      : control_(call.operands.size() % group == 0 ? nullptr : call.data<const float>(call.operands.size() - 1)),
        step_(call.step) {}
  __device__ float factor() const { return control_ == nullptr ? 1.0F : control_[kFactorElement]; }
  __device__ float updates() const {
    return control_ == nullptr ? static_cast<float>(*step_ + 1) : control_[kUpdatesElement];
  }

 private:
  const float* control_;
  const std::int64_t* step_;
};

// 1 / (1 - beta^t); in fp64, because 1 - beta^t of an early step loses digits.
__device__ inline float correction(double beta, float t) {
  return static_cast<float>(1.0 / (1.0 - pow(beta, static_cast<double>(t))));
}

}  // namespace

void adamw(const DeviceCall& call) {
  const TrainingOptions o = call.context.options;
  const UpdateControl control(call, 4);
  for (std::size_t i = 0; i + 3 < call.operands.size(); i += 4) {
    const Elements p(call, i);
    const Elements gradient(call, i + 1);
    const Elements m(call, i + 2);
    const Elements v(call, i + 3);
    const std::int64_t count = call.operands[i].elems;
    constexpr std::int64_t kRun = 16;  // elements of one thread, so that the powers are computed once for them
    const std::int64_t threads = (count + kRun - 1) / kRun;
    launch_elements(call.queue, threads, [=] __device__(std::int64_t thread) {
      const float factor = control.factor();
      if (factor == 0.0F) return;
      const auto beta1 = static_cast<float>(o.beta1);
      const auto beta2 = static_cast<float>(o.beta2);
      const float correct1 = correction(o.beta1, control.updates());
      const float correct2 = correction(o.beta2, control.updates());
      for (std::int64_t e = thread; e < count; e += threads) {
        const float g = factor * gradient(e);
        const float first = beta1 * m(e) + (1.0F - beta1) * g;
        const float second = beta2 * v(e) + (1.0F - beta2) * g * g;
        const float direction = first * correct1 / (sqrtf(second * correct2) + static_cast<float>(o.epsilon));
        m.set(e, first);
        v.set(e, second);
        p.add(e, -static_cast<float>(o.learning_rate) * (direction + static_cast<float>(o.weight_decay) * p(e)));
      }
    });
  }
}

void sgd(const DeviceCall& call) {
  const TrainingOptions o = call.context.options;
  const UpdateControl control(call, 3);
  for (std::size_t i = 0; i + 2 < call.operands.size(); i += 3) {
    const Elements p(call, i);
    const Elements gradient(call, i + 1);
    const Elements m(call, i + 2);
    launch_elements(call.queue, call.operands[i].elems, [=] __device__(std::int64_t e) {
      const float factor = control.factor();
      if (factor == 0.0F) return;
      const float momentum = static_cast<float>(o.beta1) * m(e) + factor * gradient(e);
      m.set(e, momentum);
      p.add(e, -static_cast<float>(o.learning_rate) * (momentum + static_cast<float>(o.weight_decay) * p(e)));
    });
  }
}

}  // namespace krigtune::cuda
