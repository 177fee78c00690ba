import AssentCore
import HTTPTypes

/// Tells requests that a foreign page may have made the user's browser send.
///
/// Two rules, each enough by itself. Where a browser names the page, it must be trusted to use the cookie. And, as with
/// AM, a request with the cookie needs a field that a browser adds to another site's request only after a preflight.
struct ForgeryCheck: Sendable {
    let cookie: SessionCookie

    /// Why a request is refused; `nil` when it is not. With `givesCookie` its answer may set a new cookie: then a
    /// foreign page could sign its visitor in as somebody else.
    func refusal(
        _ method: HTTPRequest.Method, _ fields: HTTPFields, _ trusted: TrustedOrigins, givesCookie: Bool = false
    ) -> String? {
        if [.get, .head, .options].contains(method) { return nil }
        let hasCookie = cookie.cookieToken(fields) != nil
        if hasCookie || givesCookie, trusted.sender(of: fields) == .foreign {
            return "The page that sends this is of an origin that the realm's allowedOrigins do not list."
        }
        guard hasCookie, !fields.contains(.requestedWith), !fields.contains(.acceptAPIVersion) else { return nil }
        return "A request with the session cookie needs X-Requested-With or Accept-API-Version."
    }
}
