import AssentCore
import AssentPlatform
import AssentVault
import Foundation
import Testing

@Suite("Backends of the platform")
struct PlatformBackendTests {
    #if os(Linux)
    @Test("The project's own builds have every backend", arguments: PlatformBackend.allCases)
    func built(_ backend: PlatformBackend) {
        #expect(backend.library != nil, "build with the flags of the Makefile: trait \(backend.trait)")
    }
    #endif

    #if TPM && PKCS11 && os(Linux)
    @Test("A demand for the user's presence is met by a PIN, refused without one, and never met by less than it says")
    func presence() throws {
        let pin = KnownSecret(Secret("271828"))
        func capabilities(_ pin: (any UserPresence)?) -> [KeyCapabilities] {
            [
                TPMKeyProvider(directory: URL(filePath: "/nonexistent"), pin: pin).capabilities,
                PKCS11KeyProvider(module: "/nonexistent", token: "none", pin: pin).capabilities,
            ]
        }
        let present = KeyDemand(level: .requireHardware, separateChip: true, presence: .anyMethod)
        for device in capabilities(pin) {
            let options = try KeyOptions.choose(for: present, on: device)
            #expect(options.presence == .pin && options.protection == .hardware && options.wrapping == .ecies)
            let bound = KeyDemand(level: .requireHardware, presence: .biometryEnrolledNow)
            #expect(throws: KeyProviderError(.userAbsent, "")) { try KeyOptions.choose(for: bound, on: device) }
        }
        for device in capabilities(nil) {
            #expect(throws: KeyProviderError(.userAbsent, "")) { try KeyOptions.choose(for: present, on: device) }
        }
    }
    #endif
}
