import AssentCore
import Foundation
import NIOCore
import NIOHTTP1

/// One connection of a browser to a receiver: one request, one page, the end.
final class RedirectHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let wait: RedirectWait
    private var isCounted = false
    private var isAnswered = false

    init(_ wait: RedirectWait) { self.wait = wait }

    func channelActive(context: ChannelHandlerContext) {
        isCounted = wait.connect()
        if isCounted { context.fireChannelActive() } else { context.close(promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        if isCounted { wait.disconnect() }
        isCounted = false
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .head(let head) = unwrapInboundIn(data), !isAnswered else { return }
        isAnswered = true
        answer(head, context)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is IdleStateHandler.IdleStateEvent { context.close(promise: nil) }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    private func answer(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        let (path, authority, redirectURI) = wait.target
        let parts = head.uri.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.first.map({ $0.utf8.elementsEqual(path.utf8) }) == true else {
            return write(.notFound, RedirectPage.nothing, context)
        }
        // Another site that points its name at this machine names itself in Host.
        guard head.headers["Host"] == [authority] else { return write(.badRequest, RedirectPage.nothing, context) }
        guard head.method == .GET else { return write(.methodNotAllowed, RedirectPage.nothing, context) }
        guard head.uri.utf8.count <= RedirectWait.limit, head.headers["Transfer-Encoding"].isEmpty,
            head.headers["Content-Length"].allSatisfy({ $0 == "0" })
        else { return write(.badRequest, RedirectPage.nothing, context) }
        // The redirect URI as it was sent to the server, with what the server has put behind it.
        let own = redirectURI.prefix { $0 != "?" }
        let redirect = parts.count > 1 ? "\(own)?\(parts[1])" : String(own)
        guard wait.claim(redirect) else { return write(.badRequest, RedirectPage.foreign, context) }
        let wait = wait
        let page = Self.isRefusal(parts.dropFirst().first) ? RedirectPage.refused : RedirectPage.received
        write(.ok, page, context) { wait.finish(.success(redirect)) }
    }

    /// Whether the answer is an error (RFC 6749 §4.1.2.1), for example because the user pressed Cancel. Only for the
    /// page: what the answer means is for the waiting sign-in to decide.
    private static func isRefusal(_ query: Substring?) -> Bool {
        query.flatMap { try? FormEncoding.parse(String($0)) }?["error"] != nil
    }

    private func write(
        _ status: HTTPResponseStatus, _ page: String, _ context: ChannelHandlerContext,
        then done: @escaping @Sendable () -> Void = {}
    ) {
        let body = ByteBuffer(string: page)
        let headers: HTTPHeaders = [
            "Content-Type": "text/html; charset=utf-8", "Content-Length": "\(body.readableBytes)",
            "Cache-Control": "no-store", "Connection": "close", "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
            "Content-Security-Policy": RedirectPage.policy,
        ]
        context.write(wrapOutboundOut(.head(.init(version: .http1_1, status: status, headers: headers))), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
        let channel = context.channel
        context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in
            channel.close(promise: nil)
            done()
        }
    }
}

/// What the browser shows at the end. It repeats nothing from the request.
enum RedirectPage {
    static let received = page(
        "Almost done", "You can close this page and go back to the app: it finishes the sign-in.")
    static let refused = page(
        "You are not signed in", "The sign-in was cancelled or refused. You can close this page and go back to the app."
    )
    static let foreign = page(
        "This is not the sign-in that the app waits for",
        "Go back to the page where you signed in, or start again in the app.")
    static let nothing = page("Nothing is here", "This address only waits for the end of a sign-in.")

    /// No script, nothing from elsewhere; the style by its digest.
    static let policy =
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; img-src data:; style-src 'sha256-\(digest)'"

    private static var digest: String { Data(SHA2.sha256(style.utf8)).base64EncodedString() }

    private static let style = """
        :root{color-scheme:light dark}body{margin:0;min-height:100vh;display:grid;place-items:center;\
        font:1rem/1.5 system-ui,sans-serif;color:#16202c;background:#eef2f6}main{max-width:26rem;margin:1.5rem;\
        padding:2.25rem;border-radius:1rem;background:#fff;box-shadow:0 12px 32px #00000014}h1{margin:0 0 .5rem;\
        font-size:1.5rem;line-height:1.25}p{margin:0;color:#566273}@media(prefers-color-scheme:dark){body{color:#e8edf3;\
        background:#10151b}main{background:#1b222b}p{color:#a4b0be}}
        """

    private static func page(_ title: String, _ text: String) -> String {
        """
        <!DOCTYPE html>
        <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
        <title>\(title)</title><link rel="icon" href="data:,"><style>\(style)</style></head>
        <body><main><h1>\(title)</h1><p>\(text)</p></main></body></html>

        """
    }
}
