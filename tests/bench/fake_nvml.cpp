// A management library with one H100 at 0000:65:00.0: the functions that krigtune-bench calls in libnvidia-ml.so.1,
// with the signatures of NVML. What FAKE_NVML_LACKS names (init, name, clock, power, temperature, reasons) is not
// supported.
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;
int code(const char* what) {
  const char* lacks = std::getenv("FAKE_NVML_LACKS");
  return lacks != nullptr && std::strcmp(lacks, what) == 0 ? kNotSupported : 0;
}
int device;
}  // namespace

extern "C" {
int nvmlInit_v2() { return code("init"); }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** handle) {
  *handle = &device;
  return std::strcmp(address, "0000:65:00.0") == 0 ? 0 : kNotFound;
}
int nvmlDeviceGetName(void* handle, char* name, unsigned length) {
  std::snprintf(name, length, "NVIDIA %s", "H100 80GB HBM3");
  return handle == &device ? code("name") : kNotFound;
}
int nvmlDeviceGetClockInfo(void* handle, int type, unsigned* mhz) {
  constexpr int kSm = 1;
  *mhz = type == kSm ? 1755 : 2619;
  return handle == &device ? code("clock") : kNotFound;
}
int nvmlDeviceGetPowerUsage(void* handle, unsigned* milliwatts) {
  *milliwatts = 612'500;
  return handle == &device ? code("power") : kNotFound;
}
int nvmlDeviceGetTemperature(void* handle, int sensor, unsigned* degrees) {
  *degrees = sensor == 0 ? 64 : 90;
  return handle == &device ? code("temperature") : kNotFound;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* handle, unsigned long long* reasons) {
  *reasons = 0x44;
  return handle == &device ? code("reasons") : kNotFound;
}
}
