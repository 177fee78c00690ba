package import Foundation

/// The rules by which cookies replace and crowd out one another (RFC 6265 §5.3, §5.4), without a clock and without a
/// place.
package struct CookieTable: Sendable {
    private struct Entry {
        var cookie: Cookie
        let created: UInt64
        var used: UInt64
    }

    private var entries: [Entry] = []
    private var counter: UInt64 = 0

    package init() {}

    /// A table of cookies that were kept elsewhere, in the order in which they were first set.
    package init(_ cookies: some Sequence<Cookie>, now: Date) {
        for cookie in cookies { insert(cookie, now: now) }
    }

    /// All cookies that have not expired, in the order in which they were first set.
    package func cookies(now: Date) -> [Cookie] {
        entries.map(\.cookie).filter { !$0.isExpired(now: now) }
    }

    /// Keeps what a reply set, when `isHostOnly` for the host itself and none below it. Returns why cookies were left
    /// out.
    package mutating func store(
        _ setCookies: [String], from origin: Origin, path: String, now: Date, isHostOnly: Bool = false
    ) -> [WireError] {
        var refused: [WireError] = []
        for setCookie in setCookies.prefix(CookieStore.cookiesPerHost) {
            do throws(WireError) {
                var cookie = try Cookie.parse(setCookie, from: origin, path: path, now: now)
                if isHostOnly { cookie = cookie.forItsHostOnly }
                guard origin.isSecure || !hidesSecureCookie(cookie) else {
                    throw WireError(.refused, "plain HTTP may not replace a Secure cookie")
                }
                insert(cookie, now: now)
            } catch {
                refused.append(error)
            }
        }
        return refused
    }

    /// Keeps a cookie, or removes the one it replaces when it has expired.
    package mutating func insert(_ cookie: Cookie, now: Date) {
        entries.removeAll { $0.cookie.isExpired(now: now) }
        counter += 1
        let existing = entries.firstIndex { $0.cookie.isSame(as: cookie) }
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

    /// The cookies that a request carries: those with longer paths first, then in the order they were set.
    package mutating func cookies(for origin: Origin, path: String, now: Date) -> [Cookie] {
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

    private mutating func makeRoom(for host: NormalizedHost) {
        if entries.count(where: { $0.cookie.host == host }) >= CookieStore.cookiesPerHost {
            removeLeastUsed { $0.cookie.host == host }
        }
        if entries.count >= CookieStore.cookiesInAll { removeLeastUsed { _ in true } }
    }

    private mutating func removeLeastUsed(where condition: (Entry) -> Bool) {
        let oldest = entries.indices.filter { condition(entries[$0]) }.min { entries[$0].used < entries[$1].used }
        if let oldest { entries.remove(at: oldest) }
    }
}

extension Cookie {
    /// Whether one replaces the other (RFC 6265 §5.3 step 11).
    package func isSame(as other: Cookie) -> Bool {
        name == other.name && host == other.host && path == other.path
            && includesSubdomains == other.includesSubdomains
    }

    fileprivate var forItsHostOnly: Cookie {
        Cookie(
            name: name, value: value, host: host, path: path, isSecure: isSecure, isHTTPOnly: isHTTPOnly,
            expires: expires)
    }
}
