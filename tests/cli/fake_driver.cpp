// A CUDA driver with FAKE_GPUS devices for machines that have none: the functions that krigtune calls in libcuda.so.1,
// with the signatures of the CUDA Driver API. The devices are H100s of 79.2 GiB; the first one has a byte less than the
// second, and so on.
#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace {
constexpr int kNoDevice = 100;
constexpr int kFirst = 7;
int count() {
  const char* text = std::getenv("FAKE_GPUS");
  return text == nullptr ? 0 : std::atoi(text);
}
}  // namespace

extern "C" {
int cuInit(unsigned /*flags*/) { return count() > 0 ? 0 : kNoDevice; }
int cuDriverGetVersion(int* version) {
  *version = 12040;
  return 0;
}
int cuDeviceGetCount(int* devices) {
  *devices = count();
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = kFirst + ordinal;
  return 0;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  constexpr std::size_t kH100 = 85'029'158'912;
  *bytes = kH100 + static_cast<std::size_t>(device - kFirst);
  return 0;
}
int cuDeviceGetName(char* name, int length, int device) {
  std::snprintf(name, static_cast<std::size_t>(length), "NVIDIA %s", "H100 80GB HBM3");
  return device >= kFirst ? 0 : kNoDevice;
}
}
