# SPDX-License-Identifier: MIT
#
# Every layer is built twice from the same sources: NAME (plain, what is timed) and NAME_traced (what is counted and
# interleaved). Under ThreadSanitizer there is no traced twin: virtual CPUs are coroutines of one thread, and
# liburcu's macros are other ones there (skb/atomic.h).
set(SKB_KINDS "plain")
if(NOT SKB_PRESET STREQUAL "tsan")
	list(APPEND SKB_KINDS "traced")
endif()

function(skb_suffix out kind)
	set(${out} "" PARENT_SCOPE)
	if(kind STREQUAL "traced")
		set(${out} "_traced" PARENT_SCOPE)
	endif()
endfunction()

# skb_layer(NAME SOURCES ... [DEPENDS LAYER ...] [LINK LIB ...])
# The definitions are PUBLIC: whatever includes the headers sees the same seam, and skb_build_stamp (skb/atomic.h)
# makes a mix of the two kinds a link error.
function(skb_layer name)
	cmake_parse_arguments(L "" "" "SOURCES;DEPENDS;LINK" ${ARGN})
	foreach(k ${SKB_KINDS})
		skb_suffix(kind ${k})
		add_library(${name}${kind} STATIC ${L_SOURCES})
		target_include_directories(${name}${kind} PUBLIC ${PROJECT_SOURCE_DIR})
		target_compile_definitions(${name}${kind} PUBLIC _GNU_SOURCE _LGPL_SOURCE MAX_SKB_FRAGS=${SKB_MAX_FRAGS}
			SKB_PAGE_SHIFT=${SKB_PAGE_SHIFT})
		if(k STREQUAL "traced")
			target_compile_definitions(${name}${kind} PUBLIC SKB_TRACED)
		endif()
		foreach(d ${L_DEPENDS})
			target_link_libraries(${name}${kind} PUBLIC ${d}${kind})
		endforeach()
		target_link_libraries(${name}${kind} PUBLIC ${L_LINK})
	endforeach()
endfunction()

# skb_program(NAME SOURCES ... LAYERS ... [LINK LIB ...] [KINDS plain|traced ...]): NAME against the plain layers,
# NAME_traced against the traced ones.
function(skb_program name)
	cmake_parse_arguments(P "" "" "SOURCES;LAYERS;LINK;KINDS" ${ARGN})
	if(NOT P_KINDS)
		set(P_KINDS plain traced)
	endif()
	foreach(k ${SKB_KINDS})
		if(k IN_LIST P_KINDS)
			skb_suffix(kind ${k})
			add_executable(${name}${kind} ${P_SOURCES})
			foreach(l ${P_LAYERS})
				target_link_libraries(${name}${kind} PRIVATE ${l}${kind})
			endforeach()
			target_link_libraries(${name}${kind} PRIVATE ${P_LINK})
		endif()
	endforeach()
endfunction()

# skb_test(NAME SOURCES ... LAYERS ... [KINDS ...] [ARGS ...] [LABELS ...]): a cmocka program of each kind, run by ctest.
# clang's ThreadSanitizer dies where vm.mmap_rnd_bits is 32, hence setarch there.
function(skb_test name)
	cmake_parse_arguments(T "" "" "SOURCES;LAYERS;LINK;KINDS;ARGS;LABELS" ${ARGN})
	skb_program(${name} SOURCES ${T_SOURCES} LAYERS ${T_LAYERS} LINK ${T_LINK} PkgConfig::CMOCKA KINDS ${T_KINDS})
	foreach(k ${SKB_KINDS})
		skb_suffix(kind ${k})
		if(TARGET ${name}${kind})
			add_test(NAME ${name}${kind} COMMAND ${SKB_TEST_LAUNCHER} $<TARGET_FILE:${name}${kind}> ${T_ARGS})
			set_tests_properties(${name}${kind} PROPERTIES LABELS "${T_LABELS}" TIMEOUT 600
				ENVIRONMENT "${SKB_TEST_ENVIRONMENT}")
		endif()
	endforeach()
endfunction()
