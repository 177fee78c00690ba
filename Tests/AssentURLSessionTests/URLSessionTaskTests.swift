import AssentAuthorization
import AssentCore
import AssentTesting
import Foundation
import HTTPTypes
import TestSupport
import Testing

@testable import AssentURLSession

#if canImport(FoundationNetworking)
import FoundationNetworking

/// What Foundation on Linux makes of a class of one's own, by kind of task, delegate and configuration: the further
/// tests of the rows of `docs/url-session.md`. The suite is serial: a class has one client at a time.
@Suite("URLSession by an app's class: tasks, delegates, configurations", .serialized) struct URLSessionTaskTests {
    private let bank = ProtectedBank()

    private static let unsupported = "end taskNotSupported"

    /// What of ours a task's completion handler is told.
    private static func code(
        _ make: (@escaping @Sendable ((any Error)?) -> Void) -> URLSessionTask
    ) async -> URLProtocolError.Code? {
        let error = await withCheckedContinuation { (continuation: CheckedContinuation<(any Error)?, Never>) in
            make { continuation.resume(returning: $0) }.resume()
        }
        return error.flatMap { AssentURLProtocol.underlyingError(of: $0) as? URLProtocolError }?.code
    }

    @Test("An upload task is refused before anything is sent, with bytes and with a file, whoever is told")
    func uploads() async throws {
        let configuration = TaskProtocol.configuration(try await bank.client())
        let session = URLSession(configuration: configuration)
        let sent = try request("/payments", "POST")
        let content = Data("200 EUR".utf8)
        let file = FileManager.default.temporaryDirectory.appending(path: "assent-upload-\(UUID().uuidString)")
        try content.write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let bytes = await Self.code { done in
            session.uploadTask(with: sent, from: content) { _, _, error in done(error) }
        }
        let ofFile = await Self.code { done in
            session.uploadTask(with: sent, fromFile: file) { _, _, error in done(error) }
        }
        #expect(bytes == .taskNotSupported && ofFile == .taskNotSupported)
        let toldOfBytes = try await SessionWitness.told(configuration) { $0.uploadTask(with: sent, from: content) }
        let toldOfFile = try await SessionWitness.told(configuration) { $0.uploadTask(with: sent, fromFile: file) }
        #expect(toldOfBytes == [Self.unsupported] && toldOfFile == [Self.unsupported])
        #expect(bank.calls.withLock { $0.isEmpty })
    }

    @Test("A download task is refused before anything is sent, also where a delegate or an async call waits for it")
    func downloads() async throws {
        let configuration = TaskProtocol.configuration(try await bank.client())
        let wanted = try request("/statement")
        let told = try await SessionWitness.told(configuration) { $0.downloadTask(with: wanted) }
        #expect(told == [Self.unsupported])
        let url = try #require(wanted.url)
        do {
            _ = try await URLSession(configuration: configuration).download(from: url)
            Issue.record("There is a file.")
        } catch {
            #expect((AssentURLProtocol.underlyingError(of: error) as? URLProtocolError)?.code == .taskNotSupported)
        }
        #expect(bank.calls.withLock { $0.isEmpty })
    }

    @Test("A delegate is told of response, content in one piece and end, whatever it answers to the response")
    func delegated() async throws {
        let bank = bank.answering { _ in
            HTTPReply(
                HTTPResponse(status: .ok),
                body: HTTPBody(length: nil, isReplayable: false) {
                    let left = Locked([[UInt8]("one ".utf8), [UInt8]("two".utf8)])
                    return { left.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
                })
        }
        let wanted = try request("/accounts")
        let told = try await SessionWitness.told(TaskProtocol.configuration(try await bank.client())) {
            $0.dataTask(with: wanted)
        }
        #expect(told == ["response 200", "content one two", "end"])
    }

    @Test("Of a payment that was approved a delegate is told the last response alone, and once")
    func toldOnce() async throws {
        let payment = try request("/payments", "POST", body: "200 EUR")
        let told = try await SessionWitness.told(TaskProtocol.configuration(try await bank.client())) {
            $0.dataTask(with: payment)
        }
        #expect(told == ["response 200", "content 200 EUR", "end"])
        #expect(bank.calls.withLock { $0.count } == 2)
    }

    @Test(
        "A 401 that asks for Basic is an error for a delegate, which is not asked for a password",
        arguments: [["Basic realm=x"], [#"Bearer realm="x""#, #"Basic realm="x""#]])
    func basicDelegate(challenges: [String]) async throws {
        let bank = bank.answering { _ in
            var response = HTTPResponse(status: .unauthorized)
            for challenge in challenges {
                response.headerFields.append(HTTPField(name: .wwwAuthenticate, value: challenge))
            }
            return HTTPReply(response)
        }
        let wanted = try request("/accounts")
        let told = try await SessionWitness.told(TaskProtocol.configuration(try await bank.client())) {
            $0.dataTask(with: wanted)
        }
        #expect(told == ["end challengeNotSupported"])
    }

    @Test(
        "A 401 of another scheme is handed over",
        arguments: [
            #"Digest realm="x", nonce="n""#, #"Bearer realm="x""#, #"Bearer realm="Basic", scope="basic", basics=x"#,
        ])
    func otherChallenges(challenge: String) async throws {
        let bank = bank.answering { _ in
            HTTPReply(HTTPResponse(status: .unauthorized, headerFields: [.wwwAuthenticate: challenge]))
        }
        let session = URLSession(configuration: TaskProtocol.configuration(try await bank.client()))
        let (_, response) = try await session.data(for: request("/accounts"))
        let reply = try #require(response as? HTTPURLResponse)
        #expect(reply.statusCode == 401 && reply.value(forHTTPHeaderField: "WWW-Authenticate") == challenge)
    }

    @Test("Fields of one name are handed over as one, in their order, however the name is written")
    func fieldsOfOneName() async throws {
        let small = try #require(HTTPField.Name("vary"))
        let bank = bank.answering { _ in
            var response = HTTPResponse(status: .ok, headerFields: [.server: "bank"])
            response.headerFields.append(HTTPField(name: .vary, value: "Accept"))
            response.headerFields.append(HTTPField(name: small, value: "Origin"))
            return HTTPReply(response)
        }
        let session = URLSession(configuration: TaskProtocol.configuration(try await bank.client()))
        let (_, response) = try await session.data(for: request("/accounts"))
        let reply = try #require(response as? HTTPURLResponse)
        #expect(reply.value(forHTTPHeaderField: "Vary") == "Accept, Origin")
        #expect(reply.value(forHTTPHeaderField: "Server") == "bank" && reply.allHeaderFields.count == 2)
    }

    @Test("A task that is resumed twice, for which Foundation starts it twice, is sent once")
    func resumedTwice() async throws {
        _ = TaskProtocol.configuration(try await bank.client())
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        let witness = LoadingWitness { end.yield() }
        let transfer = try request("/transfers", "POST", body: "200 EUR")
        let loader = TaskProtocol(request: transfer, cachedResponse: nil, client: witness)
        for _ in 0..<2 { loader.startLoading() }
        for await _ in ends { break }
        #expect(bank.calls.withLock { $0.count } == 1)
    }

    @Test("A task that is suspended and resumed, for which Foundation stops and starts it, is sent once and has an end")
    func suspended() async throws {
        let (asked, ask) = AsyncStream.makeStream(of: Void.self)
        let (gate, opening) = AsyncStream.makeStream(of: Void.self)
        let (ended, end) = AsyncStream.makeStream(of: Int?.self)
        let bank = bank.answering { _ in
            ask.yield()
            for await _ in gate { break }
            try Task.checkCancellation()
            return nil
        }
        let session = URLSession(configuration: TaskProtocol.configuration(try await bank.client()))
        let transfer = try request("/transfers", "POST", body: "200 EUR")
        let task = session.dataTask(with: transfer) { _, response, _ in
            end.yield((response as? HTTPURLResponse)?.statusCode)
            end.finish()
        }
        task.resume()
        for await _ in asked { break }
        task.suspend()
        task.resume()
        opening.finish()
        var statuses: [Int?] = []
        for await status in ended { statuses.append(status) }
        #expect(statuses == [200])
        #expect(bank.calls.withLock { $0.count } == 1)
    }

    @Test("A task that is cancelled ends with Foundation's own error for that")
    func cancelled() async throws {
        let (asked, ask) = AsyncStream.makeStream(of: Void.self)
        let (ended, end) = AsyncStream.makeStream(of: Int?.self)
        let clock = bank.clock
        let bank = bank.answering { _ in
            ask.yield()
            try await clock.sleep(until: .distantFuture)
            return nil
        }
        let session = URLSession(configuration: TaskProtocol.configuration(try await bank.client()))
        let task = session.dataTask(with: try request("/accounts")) { _, _, error in
            end.yield(error.map { ($0 as NSError).code })
            end.finish()
        }
        task.resume()
        for await _ in asked { break }
        task.cancel()
        var codes: [Int?] = []
        for await code in ended { codes.append(code) }
        #expect(codes == [NSURLErrorCancelled])
    }

    @Test("A call that is stopped while it begins is cancelled when its start returns")
    func stoppedWhileStarting() async throws {
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        let (clock, loading) = (bank.clock, Loading())
        let bank = bank.answering { _ in
            defer { end.yield() }
            loading.stop()
            try await clock.sleep(until: .distantFuture)
            return nil
        }
        let client = try await bank.client()
        loading.start(
            client,
            try RequestReader(
                request: request("/accounts"), limits: HTTPLimits(), bodyLimit: 1_000, remembering: client.origins))
        for await _ in ended { break }
        #expect(bank.calls.withLock { $0.count } == 1)
    }

    @Test("An end that comes behind the stop is told to nobody, and any other one once")
    func endAfterStop() throws {
        let told = Locked(0)
        let witness = LoadingWitness { told.withLock { $0 += 1 } }
        for (isStopped, count) in [(true, 0), (false, 1)] {
            let loading = Loading()
            loading.hold(TaskProtocol(request: try request("/accounts"), cachedResponse: nil, client: witness))
            if isStopped { loading.stop() }
            for _ in 0..<2 { loading.end(.failure(CancellationError())) }
            #expect(told.withLock { $0 } == count)
        }
    }

    @Test("Each of two sessions sends by the client of its own class, and the base class takes part in nothing")
    func twoSessions() async throws {
        let other = ProtectedBank()
        let configurations = [
            TaskProtocol.configuration(try await bank.client()), SecondProtocol.configuration(try await other.client()),
        ]
        for configuration in configurations {
            configuration.protocolClasses?.insert(AssentURLProtocol.self, at: 0)
            _ = try await URLSession(configuration: configuration).data(for: request("/accounts"))
        }
        #expect(bank.calls.withLock { $0.count } == 1 && other.calls.withLock { $0.count } == 1)
    }

    @Test("Of several classes in one configuration the first that takes a request sends it, whatever stands behind it")
    func inOrder() async throws {
        let other = ProtectedBank()
        let configuration = TaskProtocol.configuration(try await bank.client())
        _ = SecondProtocol.configuration(try await other.client())
        configuration.protocolClasses = [OtherProtocol.self, SecondProtocol.self, TaskProtocol.self]
        _ = try await URLSession(configuration: configuration).data(for: request("/accounts"))
        #expect(bank.calls.withLock { $0.isEmpty } && other.calls.withLock { $0.count } == 1)
        configuration.protocolClasses = [TaskProtocol.self, SecondProtocol.self]
        _ = try await URLSession(configuration: configuration).data(for: request("/accounts"))
        #expect(bank.calls.withLock { $0.count } == 1 && other.calls.withLock { $0.count } == 1)
    }

    @Test("Cookies of the configuration's store are sent, unless Foundation is not to write them into requests")
    func storedCookies() async throws {
        for isSent in [true, false] {
            let bank = ProtectedBank()
            let configuration = TaskProtocol.configuration(try await bank.client())
            let cookie = HTTPCookie(properties: [
                .name: "theme", .value: "dark", .domain: "api.bank.example", .path: "/",
            ])
            try #require(configuration.httpCookieStorage).setCookie(try #require(cookie))
            configuration.httpShouldSetCookies = isSent
            _ = try await URLSession(configuration: configuration).data(for: request("/accounts"))
            let call = try #require(bank.calls.withLock { $0.first })
            let cookies = try #require(call.request.headerFields[.cookie])
            #expect(cookies.contains("theme=dark") == isSent && cookies.contains("=SESS"))
        }
    }

    @Test("The configuration's own time for a request bounds nothing: the class's limits do")
    func configuredTime() async throws {
        let configuration = TaskProtocol.configuration(try await bank.client())
        configuration.timeoutIntervalForRequest = 1
        configuration.timeoutIntervalForResource = 1
        _ = try await URLSession(configuration: configuration).data(for: request("/accounts"))
        let limits = try #require(bank.calls.withLock { $0.first }).limits
        #expect(limits.read == .seconds(30) && limits.total == .seconds(20))
    }

    @Test("Nobody asks a subclass for another form of a request: what the app wrote is sent")
    func canonical() async throws {
        let configuration = TaskProtocol.configuration(try await bank.client())
        var wanted = try request("/accounts?b=2&a=1")
        wanted.setValue("kept", forHTTPHeaderField: "X-Form")
        _ = try await URLSession(configuration: configuration).data(for: wanted)
        let sent = try #require(bank.calls.withLock { $0.first }).request
        let form = try #require(HTTPField.Name("X-Form"))
        #expect(sent.headerFields[form] == "kept" && sent.path == "/accounts?b=2&a=1")
    }

    @Test("What URLProtocol.setProperty writes into a request is lost before the class sees it, unlike its fields")
    func properties() async throws {
        let key = "marked"
        let url = try #require(request("/accounts").url)
        let written = NSMutableURLRequest(url: url)
        URLProtocol.setProperty(true, forKey: key, in: written)
        written.setValue("kept", forHTTPHeaderField: "X-Form")
        MarkedProtocol.begun.withLock { $0 = [] }
        let configuration = MarkedProtocol.configuration(try await bank.client())
        let (_, response) = try await URLSession(configuration: configuration).data(for: written as URLRequest)
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        let begun = try #require(MarkedProtocol.begun.withLock { $0.first })
        #expect(begun.value(forHTTPHeaderField: "X-Form") == "kept")
        #expect(URLProtocol.property(forKey: key, in: begun) == nil)
        // Nothing here depends on it.
        #expect(bank.calls.withLock { $0.count } == 1)
    }

    @Test("A length that the app has written is not sent: what goes out is counted", arguments: ["3", "4000", "x"])
    func ownLength(length: String) async throws {
        let configuration = TaskProtocol.configuration(try await bank.client())
        var sent = try request("/transfers", "POST")
        sent.httpBodyStream = InputStream(data: Data("200 EUR".utf8))
        sent.setValue(length, forHTTPHeaderField: "Content-Length")
        let (data, _) = try await URLSession(configuration: configuration).data(for: sent)
        let call = try #require(bank.calls.withLock { $0.first })
        #expect(call.request.headerFields[.contentLength] == nil && call.body?.length == 7)
        #expect(data == Data("200 EUR".utf8))
    }

    @Test("A reply is kept in no cache, whatever it says of itself")
    func notCached() async throws {
        let bank = bank.answering { _ in
            HTTPReply(
                HTTPResponse(status: .ok, headerFields: [.cacheControl: "public, max-age=3600"]), body: HTTPBody("x"))
        }
        let configuration = TaskProtocol.configuration(try await bank.client())
        let session = URLSession(configuration: configuration)
        let wanted = try request("/accounts")
        for _ in 0..<2 { _ = try await session.data(for: wanted) }
        #expect(bank.calls.withLock { $0.count } == 2)
        #expect(try #require(configuration.urlCache).cachedResponse(for: wanted) == nil)
    }

    @Test("Who names the class nowhere does not ask it, though it is registered: not URLSession.shared either")
    func registered() async throws {
        // Foundation registers its own classes when the first session of a process is made, and they take all of http.
        let usual = URLSession(configuration: .ephemeral)
        let reserved = try ReservedPort()
        #expect(URLProtocol.registerClass(RegisteredProtocol.self))
        defer { URLProtocol.unregisterClass(RegisteredProtocol.self) }
        let url = try #require(URL(string: "http://127.0.0.1:\(reserved.port)/"))
        RegisteredProtocol.asked.withLock { $0 = [] }
        for session in [usual, URLSession(configuration: .default), .shared] { _ = try? await session.data(from: url) }
        #expect(RegisteredProtocol.asked.withLock { $0.contains(url) } == false)
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [RegisteredProtocol.self]
        _ = try? await URLSession(configuration: configuration).data(from: url)
        #expect(RegisteredProtocol.asked.withLock { $0.contains(url) } && url.port == reserved.port)
    }
}

/// The class of an app whose client a test chooses, with another form for each request.
private final class TaskProtocol: AssentURLProtocol {
    private static let chosen = Locked<AuthorizedClient?>(nil)

    override class var client: AuthorizedClient? { chosen.withLock { $0 } }
    override class var limits: HTTPLimits { HTTPLimits(total: .seconds(20)) }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest {
        var other = request
        other.setValue("other", forHTTPHeaderField: "X-Form")
        return other
    }

    static func configuration(_ client: AuthorizedClient) -> URLSessionConfiguration {
        chosen.withLock { $0 = client }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [TaskProtocol.self]
        return configuration
    }
}

/// Another class of the same app.
private final class SecondProtocol: AssentURLProtocol {
    private static let chosen = Locked<AuthorizedClient?>(nil)

    override class var client: AuthorizedClient? { chosen.withLock { $0 } }

    static func configuration(_ client: AuthorizedClient) -> URLSessionConfiguration {
        chosen.withLock { $0 = client }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [SecondProtocol.self]
        return configuration
    }
}

/// A class that notes the requests that it begins to send.
private final class MarkedProtocol: AssentURLProtocol {
    static let begun = Locked<[URLRequest]>([])
    private static let chosen = Locked<AuthorizedClient?>(nil)

    override class var client: AuthorizedClient? { chosen.withLock { $0 } }

    override func startLoading() {
        Self.begun.withLock { $0.append(request) }
        super.startLoading()
    }

    static func configuration(_ client: AuthorizedClient) -> URLSessionConfiguration {
        chosen.withLock { $0 = client }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [MarkedProtocol.self]
        return configuration
    }
}

/// A class that notes what it is asked about, and takes nothing.
private final class RegisteredProtocol: AssentURLProtocol {
    static let asked = Locked<[URL]>([])

    override class func canInit(with request: URLRequest) -> Bool {
        if let url = request.url { asked.withLock { $0.append(url) } }
        return false
    }
}

/// A delegate that notes what it is told, and refuses the response.
private final class SessionWitness: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, Sendable {
    private let tell: AsyncStream<String>.Continuation

    private init(_ tell: AsyncStream<String>.Continuation) {
        self.tell = tell
        super.init()
    }

    /// What the delegate of a session is told of one task, up to its end.
    static func told(
        _ configuration: URLSessionConfiguration, _ make: (URLSession) -> URLSessionTask
    ) async throws -> [String] {
        let (events, tell) = AsyncStream.makeStream(of: String.self)
        let session = URLSession(configuration: configuration, delegate: SessionWitness(tell), delegateQueue: nil)
        make(session).resume()
        var told: [String] = []
        for await event in events { told.append(event) }
        session.finishTasksAndInvalidate()
        return told
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        tell.yield("response \((response as? HTTPURLResponse)?.statusCode ?? 0)")
        completionHandler(.cancel)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        tell.yield("content \(String(decoding: data, as: UTF8.self))")
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        tell.yield("challenge")
        completionHandler(.performDefaultHandling, nil)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
        tell.yield("file")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if let error {
            let ours = AssentURLProtocol.underlyingError(of: error) as? URLProtocolError
            tell.yield("end \(ours?.code.rawValue ?? "\(error)")")
        } else {
            tell.yield("end")
        }
        tell.finish()
    }
}
#endif
