#pragma once
#include <string>

namespace krigtune::cuda {

/// What the libraries that this program is linked with say, as one line of JSON: GPUs and why there are none, the
/// driver's and the libraries' versions. Works without a driver.
struct DeviceProbe {
  int gpus = 0;
  std::string json;
};
DeviceProbe probe_devices();

}  // namespace krigtune::cuda
