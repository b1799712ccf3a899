#include "cuda/probe_devices.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include "krigtune/core/json.h"

namespace krigtune::cuda {
namespace {

Json device_json(int device) {
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) return nullptr;
  return {{"name", properties.name},
          {"compute_capability", std::to_string(properties.major) + "." + std::to_string(properties.minor)},
          {"multiprocessors", properties.multiProcessorCount},
          {"memory_bytes", properties.totalGlobalMem}};
}

}  // namespace

DeviceProbe probe_devices() {
  DeviceProbe probe;
  // Leaves the count as it was where there is no driver.
  const cudaError_t code = cudaGetDeviceCount(&probe.gpus);
  int driver = 0;
  int runtime = 0;
  int nccl = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  ncclGetVersion(&nccl);
  Json json = {{"gpus", probe.gpus},
               {"reason", code == cudaSuccess ? Json(nullptr) : Json(cudaGetErrorName(code))},
               {"driver", driver},
               {"runtime", runtime},
               {"nccl", nccl},
               {"cublaslt", cublasLtGetVersion()},
               {"devices", Json::array()}};
  for (int device = 0; device < probe.gpus; ++device) json["devices"].push_back(device_json(device));
  probe.json = json.dump();
  return probe;
}

}  // namespace krigtune::cuda
