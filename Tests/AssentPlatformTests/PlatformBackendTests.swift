import AssentPlatform
import Testing

@Suite("Backends of the platform")
struct PlatformBackendTests {
    #if os(Linux)
    @Test("The project's own builds have every backend", arguments: PlatformBackend.allCases)
    func built(_ backend: PlatformBackend) {
        #expect(backend.library != nil, "build with the flags of the Makefile: trait \(backend.trait)")
    }
    #endif
}
