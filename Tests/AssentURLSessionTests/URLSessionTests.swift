import AssentAuthorization
import AssentCore
import AssentJourney
import AssentTesting
import AssentTokens
import Foundation
import HTTPTypes
import Testing

@testable import AssentURLSession

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The tokens of somebody who is not signed in.
private struct MissingTokens: AccessTokenSource {
    var kind: CallKind { .user }

    func token(rejecting rejected: Secret?) async throws -> AccessToken? {
        throw TokenError(.signInNeeded, "Nobody is signed in.")
    }
}

/// The rows of `docs/url-session.md`. The suite is serial: a class has one client at a time.
@Suite("URLSession by an app's class", .serialized) struct URLSessionTests {
    private let bank = ProtectedBank()

    /// What a request ends with, if it is an error.
    private func failure(_ request: URLRequest, _ session: URLSession) async -> NSError? {
        do {
            _ = try await session.data(for: request)
            return nil
        } catch { return error as NSError }
    }

    private func status(_ response: URLResponse) -> Int? { (response as? HTTPURLResponse)?.statusCode }

    private func underlying(_ error: NSError?) -> (any AssentError)? {
        error.flatMap { AssentURLProtocol.underlyingError(of: $0) }
    }

    @Test("A request that is stopped before it is started is let go of, and nothing of it is sent")
    func stoppedBefore() async throws {
        let client = try await bank.client()
        let wanted = try request("/accounts")
        let loading = Loading()
        weak var kept: URLProtocol?
        func start() throws {
            let loader = BankProtocol(request: wanted, cachedResponse: nil, client: nil)
            kept = loader
            loading.hold(loader)
            loading.stop()
            loading.start(
                client,
                try RequestReader(
                    request: wanted, limits: HTTPLimits(), bodyLimit: 1_000, remembering: client.origins))
        }
        try start()
        #expect(kept == nil)
        #expect(bank.calls.withLock { $0.isEmpty })
    }

    @Test("A payment is approved and sent once more, with its body") func dataWithBody() async throws {
        let session = BankProtocol.session(try await bank.client())
        let (data, response) = try await session.data(for: request("/payments", "POST", body: "200 EUR"))
        #expect(status(response) == 200 && data == Data("200 EUR".utf8))
        let calls = bank.calls.withLock { $0 }
        #expect(calls.count == 2)
        let keys = Set(calls.map { $0.request.headerFields[.idempotencyKey] })
        #expect(keys.count == 1 && !keys.contains(nil))
    }

    @Test("A stream is read to its end, and can be approved like bytes") func dataWithStream() async throws {
        let session = BankProtocol.session(try await bank.client())
        var request = try request("/payments", "POST")
        request.httpBodyStream = InputStream(data: Data("200 EUR".utf8))
        let (data, response) = try await session.data(for: request)
        #expect(status(response) == 200 && data == Data("200 EUR".utf8))
    }

    @Test("Content beyond the limit is refused before anything is sent", arguments: [false, true])
    func bounded(asStream: Bool) async throws {
        let session = BankProtocol.session(try await bank.client())
        let content = Data(repeating: 65, count: 1_001)
        var request = try request("/payments", "POST")
        if asStream { request.httpBodyStream = InputStream(data: content) } else { request.httpBody = content }
        let error = await failure(request, session)
        #expect((underlying(error) as? URLProtocolError)?.code == .bodyTooLarge)
        #expect(error?.code == AssentURLProtocol.Effect.none.rawValue)
        #expect(bank.calls.withLock { $0.isEmpty })
    }

    @Test("A stream that does not end is given up when the time of a read is over") func endlessStream() async throws {
        let session = BankProtocol.session(try await bank.client())
        let stream = SilentStream(data: Data())
        let gate = stream.gate
        defer { gate.signal() }
        var sent = try request("/payments", "POST")
        sent.httpBodyStream = stream
        let call = Task { [sent] in await failure(sent, session) }
        while bank.clock.sleeperCount == 0 { await Task.yield() }
        bank.clock.advance(by: 31)
        let error = await call.value
        #expect((underlying(error) as? URLProtocolError)?.code == .bodyFailed)
        #expect(bank.calls.withLock { $0.isEmpty })
    }

    @Test("In an app that seals its calls a request is sealed or refused: its URL is absolute")
    func mustBeSealed() async throws {
        let session = BankProtocol.session(try await bank.client())
        let (_, response) = try await session.data(for: request("/accounts"))
        #expect(status(response) == 200)
        #expect(bank.calls.withLock { $0.map(\.mustBeSealed) } == [true])
    }

    @Test("Two subclasses have a client each") func twoClasses() async throws {
        let session = BankProtocol.session(try await bank.client())
        #expect(OtherProtocol.client == nil)
        #expect(try !OtherProtocol.canInit(with: request("/accounts")))
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [OtherProtocol.self, BankProtocol.self]
        let (_, response) = try await URLSession(configuration: configuration).data(for: request("/accounts"))
        #expect(status(response) == 200 && session.configuration.protocolClasses?.count == 1)
        #expect(bank.calls.withLock { $0.count } == 1)
    }

    #if canImport(FoundationNetworking)
    @Test("An upload task is refused before anything is sent") func upload() async throws {
        let session = BankProtocol.session(try await bank.client())
        do {
            _ = try await session.upload(for: try request("/payments", "POST"), from: Data("200 EUR".utf8))
            Issue.record("The upload was sent.")
        } catch {
            #expect((underlying(error as NSError) as? URLProtocolError)?.code == .taskNotSupported)
        }
        #expect(bank.calls.withLock { $0.isEmpty })
    }

    @Test("A download task is refused before anything is sent") func download() async throws {
        let session = BankProtocol.session(try await bank.client())
        let wanted = try request("/statement")
        let error: NSError? = await withCheckedContinuation { continuation in
            session.downloadTask(with: wanted) { _, _, error in
                continuation.resume(returning: error.map { $0 as NSError })
            }.resume()
        }
        #expect((underlying(error) as? URLProtocolError)?.code == .taskNotSupported)
        #expect(bank.calls.withLock { $0.isEmpty })
    }

    /// Starts a loading on a thread of its own.
    ///
    /// - Returns: how many calls have left when the start returns, and whether the end was told on its thread.
    private func started(_ wanted: URLRequest) async -> (calls: Int, isToldThere: Bool?) {
        let (ends, end) = AsyncStream.makeStream(of: Bool.self)
        let witness = LoadingWitness {
            end.yield(Thread.current.name == "start")
            end.finish()
        }
        let calls = bank.calls
        let count = await withCheckedContinuation { (continuation: CheckedContinuation<Int, Never>) in
            Thread.detachNewThread {
                Thread.current.name = "start"
                let loader = BankProtocol(request: wanted, cachedResponse: nil, client: witness)
                loader.startLoading()
                continuation.resume(returning: calls.withLock { $0.count })
            }
        }
        var told: Bool?
        for await isThere in ends { told = isThere }
        return (count, told)
    }

    @Test("A call leaves on the thread of the start, on which nobody is told how it ended")
    func begunAtOnce() async throws {
        let session = BankProtocol.session(try await bank.client())
        let wanted = try request("/accounts")
        _ = try await session.data(for: wanted)
        let (calls, isToldThere) = await started(wanted)
        #expect(calls == 2 && isToldThere == false)
    }

    @Test(
        "A source or a layer of the app's own does not run on the thread of the start, whose session it may use",
        arguments: [true, false])
    func ownCode(isSource: Bool) async throws {
        let places = Locked<[Bool]>([])
        let own = OwnCode { places.withLock { $0.append(Thread.current.name == "start") } }
        _ = BankProtocol.session(try await isSource ? bank.client(source: own) : bank.client(layers: [own]))
        let (_, isToldThere) = await started(try request("/accounts"))
        #expect(places.withLock { $0 } == [false] && isToldThere == false)
        #expect(bank.calls.withLock { $0.count } == 1)
    }

    @Test("Nobody is told of a refusal on the thread of the start") func refusedElsewhere() async throws {
        _ = BankProtocol.session(try await bank.client())
        let large = try request("/payments", "POST", body: String(repeating: "A", count: 1_001))
        let (calls, isToldThere) = await started(large)
        #expect(calls == 0 && isToldThere == false)
    }

    @Test("A redirect is handed to the app") func redirectHandedOver() async throws {
        let bank = bank.answering { _ in
            HTTPReply(HTTPResponse(status: .found, headerFields: [.location: "/elsewhere"]))
        }
        let session = BankProtocol.session(try await bank.client())
        let (_, response) = try await session.data(for: request("/accounts"))
        #expect(status(response) == 302)
        #expect((response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Location") == "/elsewhere")
        #expect(bank.calls.withLock { $0.count } == 1)
    }

    @Test(
        "A 401 that asks for Basic ends in an error, wherever Foundation would find that",
        arguments: [
            "Basic realm=x", "basic", " BASIC a=b", #"Bearer realm="x", Basic realm="y""#, "Negotiate,basic realm=x",
            #"Bearer error_description="a, Basic realm=x""#, "Negotiate ,\t BASIC realm=x",
        ])
    func basic(challenge: String) async throws {
        let bank = bank.answering { _ in
            HTTPReply(HTTPResponse(status: .unauthorized, headerFields: [.wwwAuthenticate: challenge]))
        }
        let session = BankProtocol.session(try await bank.client())
        let error = try await failure(request("/accounts"), session)
        #expect((underlying(error) as? URLProtocolError)?.code == .challengeNotSupported)
    }

    @Test("Fields of the session's configuration are not sent, and its store gets no cookie of a reply")
    func configured() async throws {
        let bank = bank.answering { _ in
            HTTPReply(HTTPResponse(status: .ok, headerFields: [.setCookie: "node=3; Path=/"]))
        }
        let configuration = BankProtocol.session(try await bank.client()).configuration
        configuration.httpAdditionalHeaders = ["X-Employee": "eve", "Authorization": "Bearer other"]
        let session = URLSession(configuration: configuration)
        let (_, response) = try await session.data(for: request("/accounts"))
        #expect(status(response) == 200)
        let sent = try #require(bank.calls.withLock { $0.last }).request.headerFields
        let employee = try #require(HTTPField.Name("X-Employee"))
        #expect(sent[employee] == nil && sent[.authorization] == nil)
        let origin = try #require(URL(string: ProtectedBank.origin))
        #expect(configuration.httpCookieStorage?.cookies(for: origin)?.isEmpty ?? true)
    }
    #endif

    @Test("Any other 401 is handed over") func otherChallenge() async throws {
        let bank = bank.answering { _ in
            HTTPReply(HTTPResponse(status: .unauthorized, headerFields: [.wwwAuthenticate: "Negotiate"]))
        }
        let session = BankProtocol.session(try await bank.client())
        let (_, response) = try await session.data(for: request("/accounts"))
        #expect(status(response) == 401)
    }

    @Test("The reply's content comes in one piece, however it was sent") func onePiece() async throws {
        let bank = bank.answering { _ in
            HTTPReply(
                HTTPResponse(status: .ok),
                body: HTTPBody(length: nil, isReplayable: false) {
                    let left = Locked([[UInt8]("one ".utf8), [UInt8]("two ".utf8), [UInt8]("three".utf8)])
                    return { left.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
                })
        }
        let session = BankProtocol.session(try await bank.client())
        let (data, _) = try await session.data(for: request("/accounts"))
        #expect(data == Data("one two three".utf8))
    }

    @Test("A redirect's request keeps method and content where it must, and no credential goes elsewhere")
    func redirectFollowed() throws {
        var sent = try request("/payments", "POST", body: "x")
        sent.setValue("Bearer t", forHTTPHeaderField: "Authorization")
        func next(_ status: Int, _ location: String) throws -> URLRequest? {
            let response = HTTPURLResponse(
                url: try #require(sent.url), statusCode: status, httpVersion: nil, headerFields: ["Location": location])
            return Redirection.next(after: sent, try #require(response))
        }
        let other = try #require(try next(303, "https://other.example/x"))
        #expect(other.httpMethod == "GET" && other.httpBody == nil)
        #expect(other.value(forHTTPHeaderField: "Authorization") == nil)
        let same = try #require(try next(307, "/again"))
        #expect(same.httpMethod == "POST" && same.httpBody == Data("x".utf8))
        #expect(same.url?.absoluteString == "\(ProtectedBank.origin)/again")
        #expect(same.value(forHTTPHeaderField: "Authorization") == "Bearer t")
        #expect(try next(304, "/x") == nil)
        #expect(try next(302, "file:///etc/passwd") == nil)
    }

    @Test("Each sending has the class's limits, and the request's timeout makes them shorter")
    func limits() async throws {
        let session = BankProtocol.session(try await bank.client())
        for timeout in [2.0, 60, .infinity] {
            var request = try request("/accounts")
            request.timeoutInterval = timeout
            _ = try await session.data(for: request)
        }
        let limits = bank.calls.withLock { $0.map(\.limits) }
        #expect(limits.map(\.total) == [.seconds(20), .seconds(20), .seconds(20)])
        #expect(limits.map(\.read) == [.seconds(2), .seconds(30), .seconds(30)])
    }

    @Test("Cancelling the task cancels the question to the user") func stopDuringJourney() async throws {
        let (asked, ask) = AsyncStream.makeStream(of: Void.self)
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        let clock = bank.clock
        let client = try await bank.client { _ in
            ask.yield()
            defer { end.yield() }
            try await clock.sleep(until: .distantFuture)
            return .decline
        }
        let session = BankProtocol.session(client)
        let call = Task { try await failure(request("/payments", "POST", body: "x"), session) }
        for await _ in asked { break }
        call.cancel()
        for await _ in ended { break }
        #expect(try await call.value != nil)
        #expect(bank.calls.withLock { $0.count } == 1)
    }

    @Test("Cancelling the task cancels its call") func stopDuringCall() async throws {
        let (asked, ask) = AsyncStream.makeStream(of: Void.self)
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        let clock = bank.clock
        let bank = bank.answering { _ in
            ask.yield()
            defer { end.yield() }
            try await clock.sleep(until: .distantFuture)
            return nil
        }
        let session = BankProtocol.session(try await bank.client())
        let call = Task { try await failure(request("/accounts"), session) }
        for await _ in asked { break }
        call.cancel()
        for await _ in ended { break }
        #expect(try await call.value != nil)
    }

    @Test("Declined and failed give the refusing reply as it came", arguments: [true, false])
    func refusal(declines: Bool) async throws {
        let client = try await bank.client { _ in
            guard declines else { throw URLError(.cannotLoadFromNetwork) }
            return .decline
        }
        let session = BankProtocol.session(client)
        let (data, response) = try await session.data(for: request("/payments", "POST", body: "x"))
        #expect(status(response) == 401 && data == Data(ProtectedBank.refusal.utf8))
        let challenge = (response as? HTTPURLResponse)?.value(forHTTPHeaderField: "WWW-Authenticate")
        #expect(challenge?.hasPrefix("SSOADVICE") == true)
        #expect(bank.calls.withLock { $0.count } == 1)
    }

    @Test("Not sent and unknown are errors with ours inside", arguments: [false, true])
    func approvedButNoReply(hasLeft: Bool) async throws {
        let bank = bank.answering { exchange in
            guard exchange.request.url?.contains("_txid=") == true else { return nil }
            throw HTTPTransportError(.connectionClosed, "cut off", mayHaveHadEffect: hasLeft)
        }
        let session = BankProtocol.session(try await bank.client())
        let error = try #require(try await failure(request("/payments", "POST", body: "x"), session))
        let inside = try #require(underlying(error) as? AuthorizationError)
        #expect(inside.code == (hasLeft ? .outcomeUnknown : .notSent) && inside.pending != nil)
        #expect(error.domain == AssentURLProtocol.errorDomain)
        #expect(error.code == (hasLeft ? AssentURLProtocol.Effect.unknown : .none).rawValue)
    }

    @Test("An effect that is not known is told as unknown, whichever part says so") func effects() {
        let cases: [(any Error, AssentURLProtocol.Effect)] = [
            (AuthorizationError(.outcomeUnknown, ""), .unknown), (AuthorizationError(.notSent, ""), .none),
            (HTTPTransportError(.connectionClosed, "", mayHaveHadEffect: true), .unknown),
            (HTTPTransportError(.connectFailed, ""), .none),
            (URLProtocolError(.malformedReply, ""), .unknown), (URLProtocolError(.invalidRequest, ""), .none),
            // Who says nothing of it has not said that there was none.
            (CancellationError(), .unknown),
        ]
        for (error, effect) in cases { #expect(LoadingEnd.wrapped(error).code == effect.rawValue, "\(error)") }
    }

    @Test("A payment for which there is no token was not sent, and is not told as one whose effect nobody knows")
    func noToken() async throws {
        let session = BankProtocol.session(try await bank.client(source: MissingTokens()))
        let error = try #require(try await failure(request("/payments", "POST", body: "x"), session))
        #expect((underlying(error) as? TokenError)?.code == .signInNeeded)
        #expect(error.code == AssentURLProtocol.Effect.none.rawValue)
        #expect(bank.calls.withLock { $0.isEmpty })
    }

    @Test("A payment whose reply breaks off is unknown, and what only reads had no effect", arguments: ["POST", "GET"])
    func brokenReply(method: String) async throws {
        let bank = bank.answering { _ in
            let content = HTTPBody(length: nil, isReplayable: false) {
                { throw HTTPTransportError(.connectionClosed, "cut off") }
            }
            return HTTPReply(HTTPResponse(status: .ok), body: content)
        }
        let session = BankProtocol.session(try await bank.client())
        let body = method == "POST" ? "x" : nil
        let error = try #require(try await failure(request("/transfers", method, body: body), session))
        #expect((underlying(error) as? HTTPTransportError)?.code == .connectionClosed)
        #expect(error.code == (body == nil ? AssentURLProtocol.Effect.none : .unknown).rawValue)
    }

    @Test("The base class takes no request, and a subclass only those to its client's resources")
    func accepted() async throws {
        let session = BankProtocol.session(try await bank.client())
        let other = URLRequest(url: try #require(URL(string: "https://other.example/")))
        #expect(try !AssentURLProtocol.canInit(with: request("/accounts")))
        #expect(try BankProtocol.canInit(with: request("/accounts")))
        #expect(!BankProtocol.canInit(with: other))
        let socket = try #require(URL(string: ProtectedBank.origin.replacing("https:", with: "wss:")))
        #expect(!BankProtocol.canInit(with: URLRequest(url: socket)))
        #expect(session.configuration.protocolClasses?.first == BankProtocol.self)
    }

    @Test("Each row of docs/url-session.md names tests that are here") func page() throws {
        let here = URL(fileURLWithPath: #filePath)
        let root = here.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "docs/url-session.md"), encoding: .utf8)
        let start = try #require(page.range(of: "<!-- tasks -->\n")).upperBound
        let end = try #require(page.range(of: "<!-- end of tasks -->")).lowerBound
        let source = try ["URLSessionTests.swift", "URLSessionTaskTests.swift"].map { name in
            try String(contentsOf: here.deletingLastPathComponent().appending(path: name), encoding: .utf8)
        }.joined()
        let rows = page[start..<end].split(separator: "\n").dropFirst(2)
        #expect(rows.count == 26)
        for row in rows {
            let cells = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            try #require(cells.count == 4, "\(row)")
            for name in cells[3].components(separatedBy: ", ") {
                let declaration = "func \(name.filter { $0 != "`" })("
                #expect(source.contains(declaration), "\(cells[0]) names \(name)")
            }
        }
    }
}
