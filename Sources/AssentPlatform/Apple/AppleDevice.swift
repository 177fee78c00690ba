#if canImport(Security)
import AssentVault
import Crypto
import Foundation
import Security

#if canImport(LocalAuthentication)
import LocalAuthentication
#endif

/// What this device says that it can do.
enum AppleDevice {
    static var hasSecureEnclave: Bool { SecureEnclave.isAvailable }

    static var capabilities: KeyCapabilities {
        KeyCapabilities(
            wrappings: hasSecureEnclave ? [.ecies] : [], hasSeparateChip: hasSecureEnclave, presence: presence,
            noticesEnrollment: true)
    }

    /// Where errors come from when the user was asked and did not agree or was not recognized.
    static let authenticationErrorDomain = "com.apple.LocalAuthentication"

    /// Whether such an error says that there were too many tries (`LAError.Code.biometryLockout`).
    static func isLockout(_ code: OSStatus) -> Bool { code == -8 }

    private static var presence: Set<PresenceMethod> {
        #if canImport(LocalAuthentication) && !os(tvOS)
        let context = LAContext()
        var methods: Set<PresenceMethod> = []
        if context.canEvaluatePolicy(.deviceOwnerAuthentication, error: nil) { methods.insert(.pin) }
        if context.canEvaluatePolicy(.deviceOwnerAuthenticationWithBiometrics, error: nil) { methods.insert(.biometry) }
        return methods
        #else
        return []
        #endif
    }
}
#endif
