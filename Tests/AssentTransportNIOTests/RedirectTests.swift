import AssentCore
import NIOCore
import NIOPosix
import Testing

@testable import AssentTransportNIO

@Suite("The loopback redirect receiver")
struct RedirectTests {
    /// A receiver that waits for `state=good`, the URL that it was told to open, and what comes of it.
    private struct Waiting {
        let receiver: LoopbackRedirectReceiver
        let opened: Locked<[String]>
        let result: Task<String, any Error>

        var port: Int { Int(receiver.redirectURI.split(separator: "/")[1].split(separator: ":").last ?? "") ?? 0 }
        var address: String { String(receiver.redirectURI.split(separator: "/")[1]) }

        func get(_ target: String, host: String? = nil, method: String = "GET", more: String = "") async throws
            -> String
        {
            try await send("\(method) \(target) HTTP/1.1\r\nHost: \(host ?? address)\r\n\(more)\r\n")
        }

        func send(_ text: String) async throws -> String {
            try await Plain.exchange(text, host: address.hasPrefix("[") ? "::1" : "127.0.0.1", port: port)
        }
    }

    private func waiting(
        at uri: String = "http://127.0.0.1/callback", silence: Int64 = 3600
    ) async throws -> Waiting {
        let opened = Locked<[String]>([])
        let (stream, opening) = AsyncStream.makeStream(of: Void.self)
        let receiver = try await LoopbackRedirectReceiver.listening(at: uri, timeout: 3600, silence: silence) { url in
            opened.withLock { $0.append(url) }
            opening.finish()
        }
        let result = Task {
            try await receiver.receive(opening: "https://as.example/authorize?state=good") {
                $0.contains("state=good")
            }
        }
        for await _ in stream {}
        return Waiting(receiver: receiver, opened: opened, result: result)
    }

    @Test("The answer comes in unchanged, the browser gets a page without it, and the port is closed")
    func answer() async throws {
        let waiting = try await waiting()
        #expect(waiting.opened.withLock { $0 } == ["https://as.example/authorize?state=good"])
        let reply = try await waiting.get("/callback?code=s3cret%2F&state=good&iss=https%3A%2F%2Fas")
        let uri = try await waiting.result.value
        #expect(uri == "\(waiting.receiver.redirectURI)?code=s3cret%2F&state=good&iss=https%3A%2F%2Fas")
        #expect(uri.hasPrefix("http://127.0.0.1:") && waiting.port > 0)
        #expect(reply.hasPrefix("HTTP/1.1 200 OK\r\n") && reply.contains("You can close this page"))
        for secret in ["s3cret", "good", "as.example"] { #expect(!reply.contains(secret)) }
        for field in [
            "Cache-Control: no-store", "Connection: close", "Referrer-Policy: no-referrer", "X-Frame-Options: DENY",
            "Content-Security-Policy: default-src 'none'",
        ] { #expect(reply.contains(field + "\r\n") || reply.contains(field + ";")) }
        #expect(!reply.contains("<script"))
        await expectGone(waiting)
        await #expect(throws: (any Error).self) {
            try await waiting.receiver.receive(opening: "x") { _ in true }
        }
    }

    @Test(
        "Whoever cancelled is not told that the app finishes the sign-in, and sees nothing of the answer",
        arguments: [
            "/callback?error=access_denied&state=good", "/callback?state=good&error=&error_description=%3Cb%3E",
        ])
    func refusal(target: String) async throws {
        let waiting = try await waiting()
        let reply = try await waiting.get(target)
        #expect(reply.hasPrefix("HTTP/1.1 200 ") && reply.contains("<h1>You are not signed in</h1>"))
        for text in ["Almost done", "finishes", "access_denied", "<b>"] { #expect(!reply.contains(text)) }
        // What it means is for whoever waits to say.
        #expect(try await waiting.result.value == waiting.receiver.redirectURI + target.dropFirst("/callback".count))
    }

    @Test(
        "What is not the answer is told so and does not end the wait",
        arguments: [
            ("/favicon.ico", 404), ("/", 404), ("/callback/", 404), ("/callback2?state=good", 404),
            ("/Callback?state=good", 404), ("/%63allback?state=good", 404), ("//callback?state=good", 404),
            ("/callback", 400), ("/callback?", 400), ("/callback?code=c", 400), ("/callback?code=c&state=bad", 400),
            ("/callback?error=access_denied", 400), ("/callback#state=good", 404),
        ])
    func strays(target: String, status: Int) async throws {
        let waiting = try await waiting()
        let reply = try await waiting.get(target)
        #expect(reply.hasPrefix("HTTP/1.1 \(status) "))
        #expect(!reply.contains("access_denied"))
        _ = try await waiting.get("/callback?state=good&code=c")
        #expect(try await waiting.result.value.hasSuffix("?state=good&code=c"))
    }

    @Test("Other methods, other hosts and bodies are refused and end nothing")
    func attacks() async throws {
        let waiting = try await waiting()
        let good = "/callback?state=good&code=evil"
        for method in ["POST", "HEAD", "PUT", "OPTIONS"] {
            #expect(try await waiting.get(good, method: method).hasPrefix("HTTP/1.1 405 "), "\(method)")
        }
        for host in ["evil.example", "evil.example:\(waiting.port)", "127.0.0.1", "localhost:\(waiting.port)", ""] {
            #expect(try await waiting.get(good, host: host).hasPrefix("HTTP/1.1 400 "), "\(host)")
        }
        #expect(try await waiting.get(good, more: "Host: evil.example\r\n").hasPrefix("HTTP/1.1 400 "))
        #expect(try await waiting.get(good, more: "Content-Length: 3\r\n").hasPrefix("HTTP/1.1 400 "))
        #expect(try await waiting.get(good, more: "Transfer-Encoding: chunked\r\n").hasPrefix("HTTP/1.1 400 "))
        let long = String(repeating: "a", count: 20_000)
        #expect(try await !waiting.get("\(good)&x=\(long)").hasPrefix("HTTP/1.1 200 "))
        #expect(
            try await !waiting.get(good, more: "X: \(long)\(long)\(long)\(long)\(long)\r\n").hasPrefix("HTTP/1.1 200 "))
        _ = try await waiting.get("/callback?state=good&code=c")
        #expect(try await waiting.result.value.hasSuffix("&code=c"))
    }

    @Test("Bytes that are not HTTP, or none, are not answered for long, and end nothing")
    func silence() async throws {
        let good = "/callback?state=good&code=evil"
        let waiting = try await waiting(silence: 1)
        for text in ["", "\u{16}\u{3}\u{1}\u{2}", "GET\r\n\r\n", "\r\n\r\n\r\n\r\n", "GET \(good) HTTP/9.9\r\n\r\n"] {
            let sent = text.isEmpty ? text : text + "\r\n\r\n"
            #expect(try await !waiting.send(sent).hasPrefix("HTTP/1.1 200 "))
        }
        let answer = "\(waiting.receiver.redirectURI)?state=good&code=c"
        #expect(waiting.receiver.deliver(answer))
        #expect(try await waiting.result.value == answer)
    }

    @Test("Of many answers at once exactly one is taken")
    func race() async throws {
        let waiting = try await waiting()
        let taken = await withTaskGroup(of: Int.self) { group in
            for number in 0..<24 {
                group.addTask {
                    let reply = try? await waiting.get("/callback?state=good&code=\(number)")
                    return reply?.hasPrefix("HTTP/1.1 200 ") == true ? 1 : 0
                }
            }
            return await group.reduce(0, +)
        }
        #expect(taken == 1)
        _ = try await waiting.result.value
    }

    @Test("A browser that connects and says nothing stops nobody else")
    func idle() async throws {
        let waiting = try await waiting()
        var silent: [any Channel] = []
        for _ in 0..<8 {
            silent.append(
                try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
                    .connect(host: "127.0.0.1", port: waiting.port).get())
        }
        _ = try await waiting.get("/callback?state=good")
        _ = try await waiting.result.value
        for channel in silent { try? await channel.close() }
    }

    @Test("Without an answer the wait ends, and says how many answers belonged to another request")
    func timeout() async throws {
        // Nothing waits for the browser to be opened: on a busy machine the time may pass before that.
        let silent = try await LoopbackRedirectReceiver.listening(at: "http://127.0.0.1/callback", timeout: 0.05) { _ in
        }
        let error = await #expect(throws: NIOTransportError.self) {
            try await silent.receive(opening: "https://as.example/authorize") { _ in true }
        }
        #expect(error?.code == .noRedirect && error?.detail.contains("in time") == true)
        let wait = RedirectWait()
        let second = await #expect(throws: NIOTransportError.self) {
            try await withCheckedThrowingContinuation { continuation in
                _ = wait.wait(continuation) { _ in false }
                _ = wait.claim("http://127.0.0.1/callback?state=bad")
                wait.giveUp()
            }
        }
        #expect(second?.detail.contains("1 that came belonged to another request") == true)
    }

    @Test("A cancelled wait ends at once and closes the port, also when it had not begun")
    func cancelled() async throws {
        let waiting = try await waiting()
        waiting.result.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.result.value }
        await expectGone(waiting)
        let receiver = try await LoopbackRedirectReceiver.listening(at: "http://127.0.0.1/c") { _ in }
        let early = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await receiver.receive(opening: "x") { _ in true }
        }
        await #expect(throws: CancellationError.self) { try await early.value }
    }

    @Test("An answer that the user copies by hand is as good as one from the browser")
    func delivered() async throws {
        let waiting = try await waiting()
        #expect(!waiting.receiver.deliver("http://127.0.0.1/callback?state=bad"))
        #expect(!waiting.receiver.deliver(String(repeating: "state=good", count: 2000)))
        #expect(waiting.receiver.deliver("http://127.0.0.1/callback?state=good"))
        #expect(try await waiting.result.value == "http://127.0.0.1/callback?state=good")
        #expect(!waiting.receiver.deliver("http://127.0.0.1/callback?state=good"))
    }

    /// Nobody answers for `waiting` any more; somebody else may have got its port since, and refuses.
    private func expectGone(_ waiting: Waiting) async {
        let late = try? await waiting.get("/callback?state=good")
        #expect(late?.hasPrefix("HTTP/1.1 200 ") != true)
    }

    /// A receiver at a port that it was told: one that was free a moment ago, since others take ports at the same time.
    private func named() async throws -> Waiting {
        for _ in 0..<20 {
            let free = try await waiting()
            free.result.cancel()
            _ = try? await free.result.value
            if let named = try? await waiting(at: "http://127.0.0.1:\(free.port)/callback") { return named }
        }
        return try await waiting()
    }

    @Test("IPv6 and localhost are listened on where the machine has them, and a port that is named is used")
    func hosts() async throws {
        let local = try await waiting(at: "http://localhost/callback")
        #expect(local.receiver.redirectURI.hasPrefix("http://localhost:"))
        _ = try await local.get("/callback?state=good")
        _ = try await local.result.value
        if let six = try? await waiting(at: "http://[::1]/cb?x=1") {
            #expect(
                six.receiver.redirectURI.hasPrefix("http://[::1]:") && six.receiver.redirectURI.hasSuffix("/cb?x=1"))
            _ = try await six.get("/cb?x=1&state=good")
            #expect(try await six.result.value == six.receiver.redirectURI + "&state=good")
        }
        let named = try await named()
        let port = named.port
        #expect(named.receiver.redirectURI == "http://127.0.0.1:\(port)/callback")
        await #expect(throws: NIOTransportError.self) {
            try await LoopbackRedirectReceiver.listening(at: "http://127.0.0.1:\(port)/callback") { _ in }
        }
        named.result.cancel()
    }

    @Test(
        "A redirect URI of another machine, or with TLS, cannot be listened on",
        arguments: [
            "https://127.0.0.1/cb", "http://bank.example/cb", "http://127.0.0.2/cb", "http://127.1/cb", "app:/cb",
            "http://127.0.0.1.evil.example/cb", "http://user@127.0.0.1/cb", "http://127.0.0.1/cb#f", "", "http://",
            "HTTP://127.0.0.1/cb", "http://0.0.0.0/cb", "http://[::]/cb", "http://127.0.0.1:99999/cb",
        ])
    func notLoopback(uri: String) async {
        let error = await #expect(throws: NIOTransportError.self) {
            try await LoopbackRedirectReceiver.listening(at: uri) { _ in }
        }
        #expect(error?.code == .notLoopback)
    }
}

/// Bytes over TCP without anything around them.
enum Plain {
    static func exchange(_ text: String, host: String, port: Int) async throws -> String {
        let collector = Collector(sends: text)
        let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .channelInitializer { $0.pipeline.addHandler(collector) }
            .connect(to: SocketAddress(ipAddress: host, port: port)).get()
        try? await channel.closeFuture.get()
        return collector.text.withLock { $0 }
    }

    private final class Collector: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        let text = Locked("")
        private let sent: String

        init(sends text: String) { sent = text }

        /// At once, and not when a task comes to it: whoever listens waits for a connection's first words only so long.
        func channelActive(context: ChannelHandlerContext) {
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: sent)), promise: nil)
            context.fireChannelActive()
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let buffer = unwrapInboundIn(data)
            text.withLock { $0 += String(buffer: buffer) }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
