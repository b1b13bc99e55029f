# SPDX-License-Identifier: MIT
#
# Target skje: a private copy of jemalloc whose names begin with skje_ (skb/skje.h), made by mk_skje.sh at build time.
find_library(SKB_JEMALLOC_PIC NAMES libjemalloc_pic.a DOC "jemalloc's static library for position-independent code")
find_path(SKB_JEMALLOC_INCLUDE NAMES jemalloc/jemalloc.h)
if(NOT SKB_JEMALLOC_PIC OR NOT SKB_JEMALLOC_INCLUDE)
	message(FATAL_ERROR "jemalloc is missing (libjemalloc_pic.a and jemalloc/jemalloc.h): install the Debian package libjemalloc-dev")
endif()

set(_skje ${PROJECT_BINARY_DIR}/skje/libskje.a)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/skje)
add_custom_command(
	OUTPUT ${_skje}
	COMMAND ${CMAKE_COMMAND} -E env AR=${CMAKE_AR} NM=${CMAKE_NM} OBJCOPY=${CMAKE_OBJCOPY}
		${PROJECT_SOURCE_DIR}/cmake/mk_skje.sh ${SKB_JEMALLOC_PIC} ${_skje}
	DEPENDS ${PROJECT_SOURCE_DIR}/cmake/mk_skje.sh ${SKB_JEMALLOC_PIC}
	COMMENT "Making a private copy of jemalloc"
	VERBATIM)
add_custom_target(skje_archive DEPENDS ${_skje})
add_library(skje STATIC IMPORTED GLOBAL)
set_target_properties(skje PROPERTIES
	IMPORTED_LOCATION ${_skje}
	INTERFACE_INCLUDE_DIRECTORIES ${SKB_JEMALLOC_INCLUDE}
	INTERFACE_LINK_LIBRARIES "m;Threads::Threads")
add_dependencies(skje skje_archive)
