// Layer normalisation (Ba, Kiros and Hinton 2016) over the last axis, h elements, and RMS normalisation (Zhang and
// Sennrich 2019):
//
//   layer: x^ = (x - mean) / stddev,  stddev = sqrt(variance + 1e-5),  y = gain x^ + bias
//          g = dy gain;  dx = (g - mean_j(g) - x^ mean_j(g x^)) / stddev;  dgain = sum_rows dy x^;  dbias = sum_rows dy
//   rms:   x^ = x / rms,  rms = sqrt(mean_j(x^2) + 1e-5),  y = gain x^
//          dx = (g - x^ mean_j(g x^)) / rms;  dgain = sum_rows dy x^
//
// One block a row; the gradients of gain and bias by one thread a column, in the order of the rows.
#include "cuda/kernels/elements.h"

namespace krigtune::cuda {
namespace {

constexpr float kEpsilon = 1e-5F;

// dgain and, where `centred`, dbias. means: null for RMS.
void parameter_gradients(const DeviceCall& call, const float* means, const float* inverses, const Elements& dgain,
                         const Elements& dbias) {
  const std::int64_t rows = call.shape().rows;
  const std::int64_t h = call.shape().inner;
  const Elements dy(call, 0);
  const Elements x(call, 1);
  const bool centred = means != nullptr;
  launch_elements(call.queue, h, [=] __device__(std::int64_t j) {
    float gain_sum = 0.0F;
    float bias_sum = 0.0F;
    for (std::int64_t row = 0; row < rows; ++row) {
      const float g = dy(row * h + j);
      const float centre = centred ? means[row] : 0.0F;
      gain_sum += g * (x(row * h + j) - centre) * inverses[row];
      bias_sum += g;
    }
    dgain.put(j, gain_sum);
    if (centred) dbias.put(j, bias_sum);
  });
}

// dx of both: `means` null means that nothing is centred.
void input_gradient(const DeviceCall& call, const float* means, const float* inverses) {
  const std::int64_t h = call.shape().inner;
  const auto count = static_cast<float>(h);
  const Elements all_dy(call, 0);
  const Elements all_x(call, 1);
  const Elements gain(call, 2);
  const Elements all_dx(call, 4);
  const bool centred = means != nullptr;
  launch_rows(call.queue, call.shape().rows, [=] __device__(const Block& block, std::int64_t row) {
    const Elements dy = all_dy.from(row * h);
    const Elements x = all_x.from(row * h);
    const Elements dx = all_dx.from(row * h);
    const float mean = centred ? means[row] : 0.0F;
    const float inverse = inverses[row];
    const auto normal = [=](std::int64_t j) { return (x(j) - mean) * inverse; };
    const float g = centred ? block.sum(h, [=](std::int64_t j) { return dy(j) * gain(j); }) / count : 0.0F;
    const float gx = block.sum(h, [=](std::int64_t j) { return dy(j) * gain(j) * normal(j); }) / count;
    block.for_each(h, [=](std::int64_t j) { dx.put(j, inverse * (dy(j) * gain(j) - g - normal(j) * gx)); });
  });
}

}  // namespace

void layer_norm_forward(const DeviceCall& call) {
  const std::int64_t rows = call.shape().rows;
  const std::int64_t h = call.shape().inner;
  const auto count = static_cast<float>(h);
  const Elements all_x(call, 0);
  const Elements gain(call, 1);
  const Elements bias(call, 2);
  const Elements all_y(call, 3);
  auto* stats = call.data<float>(4);
  launch_rows(call.queue, rows, [=] __device__(const Block& block, std::int64_t row) {
    const Elements x = all_x.from(row * h);
    const Elements y = all_y.from(row * h);
    const float mean = block.sum(h, [=](std::int64_t j) { return x(j); }) / count;
    const float variance = block.sum(h, [=](std::int64_t j) { return (x(j) - mean) * (x(j) - mean); }) / count;
    const float inverse = 1.0F / sqrtf(variance + kEpsilon);
    block.for_each(h, [=](std::int64_t j) { y.put(j, (x(j) - mean) * inverse * gain(j) + bias(j)); });
    stats[row] = mean;
    stats[rows + row] = inverse;
  });
}

void layer_norm_backward(const DeviceCall& call) {
  const auto* means = call.data<const float>(3);
  const float* inverses = means + call.shape().rows;
  parameter_gradients(call, means, inverses, {call, 5}, {call, 6});
  input_gradient(call, means, inverses);
}

void rms_norm_forward(const DeviceCall& call) {
  const std::int64_t h = call.shape().inner;
  const auto count = static_cast<float>(h);
  const Elements all_x(call, 0);
  const Elements gain(call, 1);
  const Elements all_y(call, 2);
  auto* stats = call.data<float>(3);
  launch_rows(call.queue, call.shape().rows, [=] __device__(const Block& block, std::int64_t row) {
    const Elements x = all_x.from(row * h);
    const Elements y = all_y.from(row * h);
    const float mean_square = block.sum(h, [=](std::int64_t j) { return x(j) * x(j); }) / count;
    const float inverse = 1.0F / sqrtf(mean_square + kEpsilon);
    block.for_each(h, [=](std::int64_t j) { y.put(j, x(j) * inverse * gain(j)); });
    stats[row] = inverse;
  });
}

void rms_norm_backward(const DeviceCall& call) {
  const auto* inverses = call.data<const float>(3);
  parameter_gradients(call, nullptr, inverses, {call, 5}, {call, 5});
  input_gradient(call, nullptr, inverses);
}

}  // namespace krigtune::cuda
