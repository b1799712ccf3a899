// The three functions of the CUDA driver API that count devices; their signatures are part of its stable ABI (CUDA
// Driver API reference: cuInit, cuDeviceGetCount return CUresult, 0 = success, 100 = no device).
#include "bench/probe.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <memory>

namespace krigtune {
namespace {

struct CloseLibrary {
  void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

using CuInit = int (*)(unsigned);
using CuDeviceGetCount = int (*)(int*);

}  // namespace

GpuProbe probe_gpus() {
  const Library driver(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL));
  if (!driver) return {0, "there is no NVIDIA driver (libcuda.so.1 cannot be opened)"};
  const auto init = reinterpret_cast<CuInit>(dlsym(driver.get(), "cuInit"));
  const auto count = reinterpret_cast<CuDeviceGetCount>(dlsym(driver.get(), "cuDeviceGetCount"));
  if (init == nullptr || count == nullptr) return {0, "libcuda.so.1 is no CUDA driver"};
  if (const int code = init(0); code != 0)
    return {0, fmt::format("the NVIDIA driver finds no GPU (cuInit gives {})", code)};
  int gpus = 0;
  if (const int code = count(&gpus); code != 0 || gpus <= 0) {
    return {0, fmt::format("the NVIDIA driver finds no GPU (cuDeviceGetCount gives {}, {} GPUs)", code, gpus)};
  }
  return {gpus, ""};
}

}  // namespace krigtune
