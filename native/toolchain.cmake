# Aeron's C sources are linked into a shared object, so they must be position independent.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# The results of Aeron's checks for libbsd and libuuid: without them it has its own branches, and the
# extension needs nothing but the C library.
foreach(check
    LIBBSD_EXISTS BSDSTDLIB_H_EXISTS ARC4RANDOM_PROTOTYPE_EXISTS
    LIBUUID_EXISTS UUID_H_EXISTS UUID_GENERATE_PROTOTYPE_EXISTS)
  set(${check} OFF CACHE BOOL "" FORCE)
endforeach()

# The compilers of a build for another machine or C library, as cargo-zigbuild names them.
string(REPLACE "-" "_" target "$ENV{TARGET}")
if(DEFINED ENV{CC_${target}})
  set(CMAKE_C_COMPILER $ENV{CC_${target}})
  set(CMAKE_CXX_COMPILER $ENV{CXX_${target}})
endif()
