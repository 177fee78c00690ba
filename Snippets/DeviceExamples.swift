// The examples in the doc comments of AssentOTP and AssentPlatform: Scripts/check_examples.py compares what stands
// between the marks.
import AssentCore
import AssentOTP
import AssentPlatform
import AssentVault
import Foundation

struct Refused: Error {}

func accept(_ typed: String, _ secret: Secret, after lastStep: Int64?, clock: any WallClock) throws -> Int64 {
    // snippet: totp begin
    let totp = try TOTP(secret: secret)
    guard let step = totp.matchingStep(typed, at: clock.now, after: lastStep) else { throw Refused() }
    // snippet: totp end
    return step
}

func accept(_ typed: String, _ secret: Secret, next: inout UInt64) throws {
    // snippet: hotp begin
    let hotp = try HOTP(secret: secret)
    guard let counter = hotp.matchingCounter(typed, from: next, lookAhead: 5) else { throw Refused() }
    next = counter + 1
    // snippet: hotp end
}

func answers(_ typed: String, to challenge: String, _ secret: Secret) throws -> Bool {
    // snippet: ocra begin
    let ocra = try OCRA(suite: OCRASuite("OCRA-1:HOTP-SHA256-8:QN08"), secret: secret)
    let isRight = try ocra.matches(typed, .init(challenges: [challenge]))
    // snippet: ocra end
    return isRight
}

func enrol(_ secret: Secret) throws -> Secret {
    // snippet: otpauth begin
    let account = try OTPAuthURI(issuer: "Bank", account: "ana", secret: secret)
    let shown = try account.uri()
    // snippet: otpauth end
    return shown
}

func missing() {
    // snippet: backend begin
    for backend in PlatformBackend.allCases where backend.library == nil {
        print("Built without \(backend.trait). It needs \(backend.developmentPackage).")
    }
    // snippet: backend end
}

#if PKCS11 && os(Linux)
func token(in directory: URL, pin: any UserPresence) async throws -> FileVault {
    // snippet: pkcs11 begin
    let token = PKCS11KeyProvider(module: "/usr/lib/opensc-pkcs11.so", token: "ana", pin: pin)
    let vault = try await FileVault.open(directory, keys: .requireHardware(token))
    // snippet: pkcs11 end
    return vault
}
#endif

#if TPM && os(Linux)
func device(in directory: URL, pin: any UserPresence) async throws -> FileVault {
    // snippet: tpm begin
    let tpm = TPMKeyProvider(directory: directory.appending(path: "tpm"), pin: pin)
    let vault = try await FileVault.open(directory, keys: .requireHardware(tpm))
    // snippet: tpm end
    return vault
}
#endif

#if Keyring && os(Linux)
func keep(_ token: Secret) async throws {
    // snippet: keyring begin
    let store = try KeyringSecretStore(store: "example.bank", timeToLive: 3600)
    try await store.update("token", to: token, expected: .any)
    // snippet: keyring end
}
#endif
