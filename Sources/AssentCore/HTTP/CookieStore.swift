import Foundation
import HTTPTypes

/// Cookies in memory (RFC 6265 §5.3, §5.4), bounded, with the time from an injected clock.
public actor CookieStore {
    /// The most cookies that one host may have; the one that was used longest ago makes room.
    public static let cookiesPerHost = 50

    /// The most cookies of all hosts together.
    public static let cookiesInAll = 1000

    private struct Entry {
        var cookie: Cookie
        let created: UInt64
        var used: UInt64
    }

    private let clock: any WallClock
    private var entries: [Entry] = []
    private var counter: UInt64 = 0

    /// An empty store.
    public init(clock: any WallClock) {
        self.clock = clock
    }

    /// All cookies that have not expired, in the order in which they were first set; to keep them elsewhere.
    public var cookies: [Cookie] {
        let now = clock.now
        return entries.map(\.cookie).filter { !$0.isExpired(now: now) }
    }

    /// Keeps the cookies that a reply to `request` set. One that is not acceptable is left out; the others still count.
    ///
    /// - Returns: why cookies were left out; never their values.
    @discardableResult
    public func store(_ setCookies: [String], from origin: Origin, path: String) -> [WireError] {
        var refused: [WireError] = []
        for setCookie in setCookies.prefix(Self.cookiesPerHost) {
            do throws(WireError) {
                let cookie = try Cookie.parse(setCookie, from: origin, path: path, now: clock.now)
                guard origin.isSecure || !hidesSecureCookie(cookie) else {
                    throw WireError(.refused, "plain HTTP may not replace a Secure cookie")
                }
                insert(cookie)
            } catch {
                refused.append(error)
            }
        }
        return refused
    }

    /// Keeps a cookie, or removes the one it replaces when it has expired.
    public func insert(_ cookie: Cookie) {
        let now = clock.now
        entries.removeAll { $0.cookie.isExpired(now: now) }
        counter += 1
        let existing = entries.firstIndex { Self.isSame($0.cookie, cookie) }
        if cookie.isExpired(now: now) {
            if let existing { entries.remove(at: existing) }
        } else if let existing {
            entries[existing].cookie = cookie
            entries[existing].used = counter
        } else {
            makeRoom(for: cookie.host)
            entries.append(Entry(cookie: cookie, created: counter, used: counter))
        }
    }

    /// The cookies that a request to `path` at `origin` carries: those with longer paths first, then in the order they were set.
    public func cookies(for origin: Origin, path: String) -> [Cookie] {
        let now = clock.now
        counter += 1
        var found: [Entry] = []
        for index in entries.indices where entries[index].cookie.matches(origin, path: path, now: now) {
            entries[index].used = counter
            found.append(entries[index])
        }
        found.sort { left, right in
            let lengths = (left.cookie.path.utf8.count, right.cookie.path.utf8.count)
            return lengths.0 == lengths.1 ? left.created < right.created : lengths.0 > lengths.1
        }
        return found.map(\.cookie)
    }

    /// Removes every cookie.
    public func removeAll() {
        entries = []
    }

    private static func isSame(_ one: Cookie, _ other: Cookie) -> Bool {
        one.name == other.name && one.host == other.host && one.path == other.path
            && one.includesSubdomains == other.includesSubdomains
    }

    /// Whether `cookie`, sent over plain HTTP, would stand before a Secure one of its name (RFC 6265bis §5.7).
    private func hidesSecureCookie(_ cookie: Cookie) -> Bool {
        entries.contains { entry in
            entry.cookie.isSecure && entry.cookie.name == cookie.name
                && (entry.cookie.host == cookie.host
                    || entry.cookie.includesSubdomains && Cookie.isSubdomain(cookie.host, of: entry.cookie.host)
                    || cookie.includesSubdomains && Cookie.isSubdomain(entry.cookie.host, of: cookie.host))
                && Cookie.isPath(cookie.path, within: entry.cookie.path)
        }
    }

    private func makeRoom(for host: NormalizedHost) {
        if entries.count(where: { $0.cookie.host == host }) >= Self.cookiesPerHost {
            removeLeastUsed { $0.cookie.host == host }
        }
        if entries.count >= Self.cookiesInAll { removeLeastUsed { _ in true } }
    }

    private func removeLeastUsed(where condition: (Entry) -> Bool) {
        let oldest = entries.indices.filter { condition(entries[$0]) }.min { entries[$0].used < entries[$1].used }
        if let oldest { entries.remove(at: oldest) }
    }
}

/// Gives calls to chosen origins their cookies and keeps those that the replies set. All other calls pass untouched.
public struct CookieMiddleware: HTTPMiddleware {
    private let store: CookieStore
    private let origins: Set<Origin>

    /// Cookies of `store` for `origins` and for nobody else.
    public init(store: CookieStore, origins: Set<Origin>) {
        self.store = store
        self.origins = origins
    }

    /// Adds `Cookie` and reads `Set-Cookie`. A cookie that the call brings itself wins over a stored one of its name.
    public func intercept(_ call: HTTPCall, next: HTTPPipeline.Next) async throws -> HTTPReply {
        guard let origin = try? Origin(call.request), origins.contains(origin) else { return try await next.send(call) }
        let path = URLText.withoutQuery(call.request.path ?? "/")
        var call = call
        let own = call.request.headerFields[.cookie] ?? ""
        let ownNames = Set(own.split(separator: ";").map { $0.prefix { $0 != "=" }.filter { $0 != " " } })
        let added = await store.cookies(for: origin, path: path).filter { !ownNames.contains($0.name) }
        if !added.isEmpty {
            let pairs = added.map { "\($0.name)=\($0.value.reveal())" }
            call.request.headerFields[.cookie] = ((own.isEmpty ? [] : [own]) + pairs).joined(separator: "; ")
        }
        let reply = try await next.send(call)
        let setCookies = reply.response.headerFields[values: .setCookie]
        if !setCookies.isEmpty { await store.store(setCookies, from: origin, path: path) }
        return reply
    }
}
