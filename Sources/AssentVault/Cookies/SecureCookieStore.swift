public import AssentCore
import Foundation
public import Logging

/// Cookies that outlive the process, sealed in a ``/AssentCore/SecretStore``, for several processes at once.
///
/// Matching and replacement are those of RFC 6265 with the limits of RFC 6265bis. Three things differ from a browser:
///
/// - There is no list of public suffixes, so a `Domain` attribute is refused where it would let another host have
///   the cookie: one that names the host or a parent of it leaves the cookie to the host that set it, anything else
///   refuses the cookie. A load balancer's cookie for `.example.com` therefore goes back to the host that sent it, and
///   nowhere else.
/// - A cookie without a lifetime ends with the process, unless its name is in `persisting`: AM's load balancers'
///   `amlbcookie` names the node that has the user's session, which outlives the process too.
/// - At most ``cookiesInAll`` cookies are kept on the disk; the oldest make room.
///
/// A store that cannot be read or written stops no call: the calls go without what is on the disk, and the logger is
/// given the reason, without any value.
public actor SecureCookieStore: CookieJar {
    /// The most cookies that are kept on the disk. Each has at most 4,096 bytes of name and value.
    public static let cookiesInAll = 100

    /// The name of the secret that holds the cookies.
    public static let secretName = "cookies"

    /// How many seconds later a cookie that is otherwise the same may end without being written anew.
    private static let lifetimeSlack: TimeInterval = 60

    private static let attempts = 16
    private static let byteLimit = 512 << 10

    private let secrets: any SecretStore
    private let persisting: Set<String>
    private let clock: any WallClock
    private let logger: Logger
    private var transient: [Cookie] = []
    private var known: (version: UInt64, cookies: [Cookie])?
    private nonisolated let removed = Locked<UInt64>(0)

    /// How often this value has removed everything.
    public nonisolated var removals: UInt64 { removed.withLock { $0 } }

    /// Cookies in `secrets`.
    ///
    /// - Parameters:
    ///   - secrets: where they are sealed, under the name ``secretName``.
    ///   - persisting: names of cookies that are kept although they have no lifetime.
    ///   - clock: judges what has expired.
    ///   - logger: gets a line when the store fails.
    public init(
        in secrets: any SecretStore, persisting: Set<String> = ["amlbcookie"], clock: any WallClock = SystemClock(),
        logger: Logger = Logger(label: "assent.cookies")
    ) {
        self.secrets = secrets
        self.persisting = persisting
        self.clock = clock
        self.logger = logger
    }

    /// Keeps the cookies that a reply to a request for `path` at `origin` set. One that is not acceptable is left out.
    ///
    /// - Returns: why cookies were left out; never their values.
    @discardableResult
    public func store(
        _ setCookies: [String], from origin: Origin, path: String, since removals: UInt64? = nil
    ) async -> [WireError] {
        let before = removals ?? self.removals
        var refused: [WireError] = []
        do {
            for _ in 0..<Self.attempts {
                let stored = try await load()
                guard self.removals == before else { return [] }
                let cookies: [Cookie]
                (cookies, refused) = changed(stored.cookies, by: setCookies, from: origin, path: path)
                do {
                    let kept = try await keep(cookies.filter(isLasting), instead: stored, since: before)
                    guard self.removals == before else { return [] }
                    // Another call may have come in between.
                    transient = changed(kept, by: setCookies, from: origin, path: path).cookies.filter {
                        !isLasting($0)
                    }
                    return refused
                } catch let error as SecretStoreError where error.code == .versionMismatch { continue }
            }
            logger.warning("cookies were not kept: other processes change them all the time")
        } catch {
            logger.warning("cookies were not kept", metadata: ["error": "\(error)"])
        }
        guard self.removals == before else { return [] }
        // Then they last as long as the process.
        (transient, refused) = changed(known?.cookies ?? [], by: setCookies, from: origin, path: path)
        return refused
    }

    private func changed(
        _ stored: [Cookie], by setCookies: [String], from origin: Origin, path: String
    ) -> (cookies: [Cookie], refused: [WireError]) {
        let now = clock.now
        var table = CookieTable(stored + transient, now: now)
        let refused = table.store(setCookies, from: origin, path: path, now: now, isHostOnly: true)
        return (table.cookies(now: now), refused)
    }

    private func isLasting(_ cookie: Cookie) -> Bool { cookie.expires != nil || persisting.contains(cookie.name) }

    /// The cookies that a request to `path` at `origin` carries: those with longer paths first, then in the order they
    /// were set.
    public func cookies(for origin: Origin, path: String) async -> [Cookie] {
        var stored = known?.cookies ?? []
        do {
            stored = try await load().cookies
        } catch {
            logger.warning("the stored cookies cannot be read", metadata: ["error": "\(error)"])
        }
        // Mostly there are none, and each call asks.
        guard !stored.isEmpty || !transient.isEmpty else { return [] }
        let now = clock.now
        var table = CookieTable(stored + transient, now: now)
        return table.cookies(for: origin, path: path, now: now)
    }

    /// Removes every cookie, also those of other processes.
    ///
    /// - Throws: ``/AssentCore/SecretStoreError`` when they are still on the disk.
    public func removeAll() async throws {
        removed.withLock { $0 += 1 }
        transient = []
        known = nil
        try await secrets.update(Self.secretName, to: nil, expected: .any)
    }

    private func load() async throws -> (version: UInt64?, cookies: [Cookie]) {
        guard let secret = try await secrets.value(Self.secretName) else {
            known = nil
            return (nil, [])
        }
        if let known, known.version == secret.version { return (known.version, known.cookies) }
        let cookies = try CookieRecord.decode(secret.value)
        known = (secret.version, cookies)
        return (secret.version, cookies)
    }

    private func keep(
        _ cookies: [Cookie], instead of: (version: UInt64?, cookies: [Cookie]), since removals: UInt64
    ) async throws -> [Cookie] {
        var kept = Array(cookies.suffix(Self.cookiesInAll))
        if Self.isAlmost(kept, of.cookies) { return of.cookies }
        var record = CookieRecord.encode(kept)
        while record.count > Self.byteLimit {
            kept.removeFirst()
            record = CookieRecord.encode(kept)
        }
        let version = try await secrets.update(
            Self.secretName, to: kept.isEmpty ? nil : record, expected: of.version.map { .exactly($0) } ?? .absent)
        guard self.removals == removals else {
            // It may have been written after everything was removed.
            if !kept.isEmpty { try await secrets.update(Self.secretName, to: nil, expected: .exactly(version)) }
            return []
        }
        known = kept.isEmpty ? nil : (version, kept)
        return kept
    }

    /// Whether nothing differs but that some cookie ends a little later.
    private static func isAlmost(_ new: [Cookie], _ old: [Cookie]) -> Bool {
        new.count == old.count
            && zip(new, old).allSatisfy { new, old in
                guard let end = new.expires, let oldEnd = old.expires else { return new == old }
                return new.isSame(as: old) && new.value == old.value && new.isSecure == old.isSecure
                    && new.isHTTPOnly == old.isHTTPOnly && (0...lifetimeSlack).contains(end.timeIntervalSince(oldEnd))
            }
    }
}
