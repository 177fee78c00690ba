package import AssentCore
import AssentJOSE
package import AssentSigningProtocol
package import AssentTokens
package import Foundation

/// A signed trust file: which hosts an app calls, with which pins, and whose credentials each gets.
///
/// ```swift
/// let shipped = try TrustFile(shipped: String(contentsOf: bundled, encoding: .utf8))
/// let assent = try Assent(.init(server: server, client: client, trust: shipped, vault: vault))
/// ```
///
/// The file is signed offline (`assent config sign`), and each version names the keys that may sign the next one. An
/// app is shipped with one version, which is as trustworthy as the app itself, and gets later ones from the addresses
/// that the file names. Format and rules are in `docs/trust-file.md`.
public struct TrustFile: Sendable, Hashable {
    /// The most bytes that a file may have.
    public static let limit = 64 << 10

    /// The media type in the header.
    package static let type = "assent-trust+jwt"

    /// The file as it is published.
    package let compact: String

    /// The key that signed it.
    package let signer: KeyThumbprint

    package let content: TrustContent

    /// The app, its platform and its environment.
    public var audience: String { content.audience }

    /// The version, from 1.
    public var version: Int { content.version }

    /// The file that an app is shipped with. Nothing vouches for it but the app that it is a part of, so its signature
    /// is checked only where its own keys can: a key that has signed it may have been replaced in it.
    ///
    /// - Parameter text: the compact JWS, without white space.
    /// - Throws: ``TrustFileError``.
    public init(shipped text: String) throws(TrustFileError) {
        let message = try SignedDocument(text, .trustFile)
        let file = try TrustFile(message)
        if file.content.keys.contains(where: { $0.thumbprint == message.kid }) {
            try message.verify(with: file.content.keys)
        }
        self = file
    }

    /// What was verified before it was kept in the vault.
    init(stored text: String) throws(TrustFileError) { try self.init(SignedDocument(text, .trustFile)) }

    private init(_ message: SignedDocument) throws(TrustFileError) {
        (compact, signer, content) = (message.compact, message.kid, try message.content())
    }

    /// The next version: signed with a key of this one, for the same audience, without a gap, and not older.
    ///
    /// - Throws: ``TrustFileError``.
    package func successor(_ text: String) throws(TrustFileError) -> TrustFile {
        let message = try SignedDocument(text, .trustFile)
        guard content.keys.contains(where: { $0.thumbprint == message.kid }) else {
            throw TrustFileError(.unknownKey, "Version \(version) does not name the key that signed this file.")
        }
        try message.verify(with: content.keys)
        let next = try TrustFile(message)
        guard next.content.audience.utf8.elementsEqual(content.audience.utf8) else {
            throw TrustFileError(.wrongAudience, "The file is for \(next.audience), and not for \(audience).")
        }
        guard next.version == version + 1 else {
            throw TrustFileError(.wrongVersion, "This is version \(next.version), and \(version + 1) comes next.")
        }
        guard next.content.issuedAt >= content.issuedAt else {
            throw TrustFileError(.wrongTime, "Version \(next.version) says that it is older than version \(version).")
        }
        return next
    }

    /// Signs a file.
    ///
    /// - Throws: ``TrustFileError`` `tooLarge`, what reading it back throws, and what the key throws.
    package static func sign(_ content: TrustContent, with key: any SigningKey) async throws -> TrustFile {
        let kid = try ProtocolKey(key).thumbprint
        let header: JSONObject = ["typ": .string(type), "kid": kid.json]
        return try TrustFile(stored: await JWS.sign(content.encoded(), header: header, with: key))
    }
}

extension TrustFile {
    /// What counts as now, in seconds since 1970: a device's clock that has been set back makes no old pin valid again,
    /// since this file, and all before it, were made at a known time.
    package func now(_ clock: Date) -> Int { max(clock.wholeSeconds, content.issuedAt) }

    /// Whether nothing in it is valid any more.
    package func hasExpired(at now: Int) -> Bool { content.expires.map { now >= $0 } ?? false }

    /// The valid pins of each host. A host without one is not in it, so that it is not called.
    package func pins(at now: Int) -> [String: PinRequirement] {
        guard !hasExpired(at: now) else { return [:] }
        var pins: [String: PinRequirement] = [:]
        for host in content.hosts {
            let live = host.livePins(at: now)
            // That a backup has ended must not end the other one as well.
            if let first = live.first { pins[host.host] = live.count > 1 ? .pins(live) : .singlePin(first) }
        }
        return pins
    }

    /// The entry that is about an origin: that of host and port before that of the host.
    package func host(of origin: Origin) -> TrustedHost? {
        let exact = content.hosts.first { $0.hasPort && $0.origin == origin }
        return exact ?? content.hosts.first { !$0.hasPort && (try? NormalizedHost($0.host)) == origin.host }
    }

    /// Whose credential an origin gets; `nil` for one that is not named. A host without a port stands for port 443.
    package func kinds(of origin: Origin) -> Set<CallKind>? {
        guard origin.isSecure, let host = host(of: origin), host.origin == origin else { return nil }
        return Set(host.sends)
    }

    /// The first second after `now` in which something ends; `nil` when nothing will.
    package func nextEnd(after now: Int) -> Int? {
        let ends = content.hosts.flatMap(\.pins).map(\.notAfter) + [content.expires].compactMap(\.self)
        return ends.filter { $0 > now }.min()
    }
}

extension Date {
    /// Seconds since 1970, rounded down; 0 for what no file can say.
    var wholeSeconds: Int { Int(exactly: timeIntervalSince1970.rounded(.down)).map { max(0, $0) } ?? 0 }
}
