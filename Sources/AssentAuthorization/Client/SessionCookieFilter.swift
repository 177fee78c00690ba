package import AssentCore
import HTTPTypes

/// Keeps AM's session out of the cookie store: it travels where it is put on purpose, never because it was set once.
package struct SessionCookieFilter: HTTPMiddleware {
    private let name: String

    package init(name: String) { self.name = name }

    package func intercept(_ call: HTTPCall, next: HTTPPipeline.Next) async throws -> HTTPReply {
        var reply = try await next.send(call)
        let cookies = reply.response.headerFields[values: .setCookie]
        if !cookies.isEmpty {
            reply.response.headerFields[values: .setCookie] = cookies.filter { cookie in
                cookie.prefix { $0 != "=" }.filter { $0 != " " } != name
            }
        }
        return reply
    }
}
