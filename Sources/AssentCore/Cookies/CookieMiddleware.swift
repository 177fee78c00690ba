import HTTPTypes

/// Where cookies are kept between calls: in memory (``CookieStore``) or sealed on the disk (`SecureCookieStore`).
public protocol CookieJar: Sendable {
    /// Keeps the cookies that a reply to a request for `path` at `origin` set, as far as they are acceptable.
    ///
    /// - Parameters:
    ///   - setCookies: the values of `Set-Cookie`.
    ///   - origin: who has set them.
    ///   - path: of the request.
    ///   - removals: what ``removals`` was when the call went out; `nil` where that does not matter. Where everything
    ///     was removed since, also while this is done, nothing is kept.
    /// - Returns: why cookies were left out; never their values.
    @discardableResult
    func store(
        _ setCookies: [String], from origin: Origin, path: String, since removals: UInt64?
    ) async -> [WireError]

    /// The cookies that a request to `path` at `origin` carries, in their order.
    func cookies(for origin: Origin, path: String) async -> [Cookie]

    /// How often everything was removed here. What a call brings that went out before the last time is not kept: it may
    /// say who the user was then.
    var removals: UInt64 { get }
}

extension CookieJar {
    /// It does not count, and what calls bring is always kept.
    public var removals: UInt64 { 0 }
}

/// Gives calls to chosen origins their cookies and keeps those that the replies set. All other calls pass untouched.
///
/// Some cookies are no matter of a cookie store, AM's session above all: it travels where it is put on purpose, never
/// because a reply has set it once. What is named in `ignoring` is neither kept nor shown to the layers above.
public struct CookieMiddleware: HTTPMiddleware {
    private let store: any CookieJar
    private let origins: Set<Origin>
    private let ignored: Set<String>

    /// Cookies of `store` for `origins` and for nobody else.
    ///
    /// - Parameters:
    ///   - store: keeps the cookies.
    ///   - origins: who sets and gets cookies.
    ///   - ignoring: names of cookies that are dropped from every reply of those origins.
    public init(store: any CookieJar, origins: Set<Origin>, ignoring: Set<String> = []) {
        self.store = store
        self.origins = origins
        ignored = ignoring
    }

    /// Adds `Cookie` and reads `Set-Cookie`. A cookie that the call brings itself wins over a stored one of its name.
    public func intercept(_ call: HTTPCall, next: HTTPPipeline.Next) async throws -> HTTPReply {
        guard !origins.isEmpty, let origin = try? call.origin, origins.contains(origin) else {
            return try await next.send(call)
        }
        let path = URLText.withoutQuery(call.request.path ?? "/")
        let removals = store.removals
        let stored = await store.cookies(for: origin, path: path)
        var reply: HTTPReply
        if stored.isEmpty {
            reply = try await next.send(call)
        } else {
            reply = try await next.send(Self.adding(stored, to: call))
        }
        var setCookies = reply.response.headerFields[values: .setCookie]
        guard !setCookies.isEmpty else { return reply }
        if !ignored.isEmpty {
            setCookies.removeAll { ignored.contains(Cookie.name(in: $0)) }
            reply.response.headerFields[values: .setCookie] = setCookies
        }
        if !setCookies.isEmpty {
            await store.store(setCookies, from: origin, path: path, since: removals)
        }
        return reply
    }

    private static func adding(_ stored: [Cookie], to original: HTTPCall) -> HTTPCall {
        var call = original
        var added = stored
        var value = call.request.headerFields[.cookie] ?? ""
        if !value.isEmpty {
            let ownNames = names(in: value)
            added.removeAll { ownNames.contains($0.name) }
        }
        for cookie in added {
            value += "\(value.isEmpty ? "" : "; ")\(cookie.name)=\(cookie.value.reveal())"
        }
        call.request.headerFields.setCookie(value)
        return call
    }

    private static func names(in field: String) -> Set<String> {
        Set(
            field.utf8.split(separator: UInt8(ascii: ";")).map { pair in
                String(
                    decoding: pair.prefix { $0 != UInt8(ascii: "=") }.filter { $0 != UInt8(ascii: " ") }, as: UTF8.self)
            })
    }
}
