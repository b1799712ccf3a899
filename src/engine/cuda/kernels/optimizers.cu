// AdamW (Loshchilov and Hutter 2019, algorithm 2) and SGD with momentum (Polyak 1964), weight decay decoupled in both:
//
//   adamw: m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
//          p = p - lr (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon) + weight_decay p)
//   sgd:   m = b1 m + g;  p = p - lr (m + weight_decay p)
//
// With a control, t counts the updates that were done, g is multiplied by its factor, and a factor of 0 updates
// nothing. What all elements share is computed first, by one thread, into scratch memory.
#include "engine/cuda/kernels/elements.h"

namespace krigtune::cuda {
namespace {

/// What a step is made of. The host does not know it: whether this step overflows is found on the device.
struct StepFactors {
  float of_gradient;
  float correct1, correct2;  ///< 1 / (1 - beta^t)
};
constexpr std::int64_t kStepFloats = sizeof(StepFactors) / sizeof(float);

// In fp64, because 1 - beta^t of an early step loses digits.
__device__ inline float correction(double beta, double t) { return static_cast<float>(1.0 / (1.0 - pow(beta, t))); }

/// Operands in groups of `group`, and a control where one is left over.
const StepFactors* find_factors(const DeviceCall& call, std::size_t group) {
  const bool controlled = call.operands.size() % group != 0;
  const float* control = controlled ? call.data<const float>(call.operands.size() - 1) : nullptr;
  const std::int64_t* step = call.step;
  const double beta1 = call.context.options.beta1;
  const double beta2 = call.context.options.beta2;
  auto* factors = reinterpret_cast<StepFactors*>(call.scratch);
  launch_elements(call.queue, 1, [=] __device__(std::int64_t) {
    const double t =
        control == nullptr ? static_cast<double>(*step + 1) : static_cast<double>(control[schedule::kUpdatesElement]);
    *factors = {control == nullptr ? 1.0F : control[schedule::kFactorElement], correction(beta1, t),
                correction(beta2, t)};
  });
  return factors;
}

/// TrainingOptions in the kernels' precision.
struct Rates {
  float learning_rate, beta1, beta2, epsilon, decay;

  explicit Rates(const engine::TrainingOptions& o)
      : learning_rate(static_cast<float>(o.learning_rate)),
        beta1(static_cast<float>(o.beta1)),
        beta2(static_cast<float>(o.beta2)),
        epsilon(static_cast<float>(o.epsilon)),
        decay(static_cast<float>(o.weight_decay)) {}

  __device__ float moved(float p, float direction) const { return p - learning_rate * (direction + decay * p); }
};

}  // namespace

std::int64_t optimizer_scratch(const plan::Operation& /*operation*/) { return kStepFloats; }

void adamw(const DeviceCall& call) {
  const Rates rates(call.context.options);
  const StepFactors* factors = find_factors(call, 4);
  for (std::size_t i = 0; i + 3 < call.operands.size(); i += 4) {
    const Elements p(call, i);
    const Elements gradient(call, i + 1);
    const Elements m(call, i + 2);
    const Elements v(call, i + 3);
    launch_packs(call.queue, call.operands[i].elems, {p, gradient, m, v}, [=] __device__(auto at) {
      const StepFactors step = *factors;
      if (step.of_gradient == 0.0F) return;
      const auto old_p = p(at);
      const auto g = map([=](float each) { return step.of_gradient * each; }, gradient(at));
      const auto first =
          map([=](float old, float each) { return rates.beta1 * old + (1.0F - rates.beta1) * each; }, m(at), g);
      const auto second =
          map([=](float old, float each) { return rates.beta2 * old + (1.0F - rates.beta2) * each * each; }, v(at), g);
      m.set(at, first);
      v.set(at, second);
      const auto moved = [=](float old, float mean, float square) {
        const float stddev = sqrtf(square * step.correct2);
        return rates.moved(old, mean * step.correct1 / (stddev + rates.epsilon));
      };
      p.set(at, map(moved, old_p, first, second));
    });
  }
}

void sgd(const DeviceCall& call) {
  const Rates rates(call.context.options);
  const StepFactors* factors = find_factors(call, 3);
  for (std::size_t i = 0; i + 2 < call.operands.size(); i += 3) {
    const Elements p(call, i);
    const Elements gradient(call, i + 1);
    const Elements m(call, i + 2);
    launch_packs(call.queue, call.operands[i].elems, {p, gradient, m}, [=] __device__(auto at) {
      const float factor = factors->of_gradient;
      if (factor == 0.0F) return;
      const auto old_p = p(at);
      const auto momentum =
          map([=](float old, float g) { return rates.beta1 * old + factor * g; }, m(at), gradient(at));
      m.set(at, momentum);
      p.set(at, map([=](float old, float direction) { return rates.moved(old, direction); }, old_p, momentum));
    });
  }
}

}  // namespace krigtune::cuda
