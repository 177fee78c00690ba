import AssentCore
import AssentOTP
import AssentSigningProtocol

/// A key for one-time codes that the server has given to a container.
struct OneTimeKeyRecord: ShapedPart {
    /// The form of this record: 1.
    var format = 1
    var did: SigningID
    var label: String
    /// The key as an `otpauth` URI.
    var uri: Secret
    /// The next counter value, where codes are made by a counter.
    var counter: Int

    static let shape = MessageShape<Self>(Self.init) {
        Member("format", \.format, .integer(1...1))
        Member("did", \.did)
        Member("label", \.label, .label)
        Member("uri", \.uri, .secret(ascii: 1...OneTimeKey.uriLimit))
        Member("counter", \.counter)
    }

    /// What makes its codes.
    ///
    /// - Throws: `OTPError` when the server's URI is none.
    func generator() throws(OTPError) -> Generator {
        let text = uri.reveal()
        if text.utf8.starts(with: "otpauth://ocra/".utf8) { return .challenge(try OCRAAuthURI(text).ocra()) }
        let account = try OTPAuthURI(text)
        if let totp = try account.totp() { return .time(totp) }
        guard let hotp = try account.hotp() else { throw OTPError(.wrongScheme) }
        return .counter(hotp)
    }

    /// A record whose counter passes 2^53−1 cannot be read any more, and so neither used nor replaced.
    static let highestFirstCounter = 1 << 52

    /// The counter value with which the server's URI begins.
    static func firstCounter(_ uri: Secret) -> Int {
        guard case .counter(let first)? = try? OTPAuthURI(uri.reveal()).moving else { return 0 }
        return Int(clamping: first)
    }

    /// How codes are made.
    enum Generator {
        case time(TOTP)
        case counter(HOTP)
        case challenge(OCRA)
    }
}

extension ContainerStore {
    private static let oneTimeKeys = "signing.otp."

    private static func name(_ did: SigningID, _ label: String) -> String { "\(oneTimeKeys)\(did.text).\(label)" }

    /// Keeps a key. The same one stays as it is, with its counter; another one takes the place of the one with its
    /// label: a server that was restored from a backup destroys keys by counter, and a renewal brings others.
    func keep(_ key: OneTimeKeyRecord) async throws {
        let name = Self.name(key.did, key.label)
        if let kept: OneTimeKeyRecord = try await read(name), kept.uri == key.uri { return }
        try await store.update(name, to: Secret(bytes: key.encoded()), expected: .any)
    }

    /// The keys of a container, sorted by label.
    func oneTimeKeys(of did: SigningID) async throws -> [OneTimeKeyRecord] {
        try await read(all: "\(Self.oneTimeKeys)\(did.text).")
    }

    /// Takes the next counter value of a key: no code is shown before it is stored that it was.
    func takeCounter(_ did: SigningID, _ label: String) async throws -> Int {
        let taken: OneTimeKeyRecord = try await modify(
            Self.name(did, label), missing: .credentialsLost, busy: "Others keep taking codes."
        ) { $0.counter += 1 }
        return taken.counter - 1
    }

    func removeOneTimeKeys(of did: SigningID) async throws {
        for key in try await oneTimeKeys(of: did) {
            try await store.update(Self.name(did, key.label), to: nil, expected: .any)
        }
    }
}
