import AsyncHTTPClient
import Foundation
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix

/// The protected service behind a route.
struct Upstream: Sendable {
    /// Why there is no reply from the service.
    enum Failure: Error {
        /// It was never reached: nothing can have happened.
        case notForwarded
        /// The request may have reached it: what happened is unknown.
        case unknown
    }

    /// For requests that may stream and repeat.
    private let pooled: HTTPClient

    /// For requests that must not go out on a connection that the service may be closing right now: each has its own.
    private let single: HTTPClient
    private let timeout: TimeAmount
    private let logger: Logger

    init(timeout: TimeAmount = .seconds(30), logger: Logger) {
        var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow, decompression: .disabled)
        configuration.timeout.connect = .seconds(5)
        // A service that refuses is not asked again behind the client's back: the client is told at once.
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.networkFrameworkWaitForConnectivity = false
        configuration.httpVersion = .http1Only
        pooled = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        configuration.connectionPool.idleTimeout = .milliseconds(1)
        single = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        self.timeout = timeout
        self.logger = logger
    }

    /// Ends all connections.
    func shutdown() async {
        try? await pooled.shutdown()
        try? await single.shutdown()
    }

    /// Sends a request and returns the reply once its header is there.
    ///
    /// - Throws: ``Failure``.
    func forward(
        method: HTTPRequest.Method, url: String, fields: HTTPFields, body: HTTPClientRequest.Body?, once: Bool
    ) async throws -> HTTPClientResponse {
        var request = HTTPClientRequest(url: url)
        request.method = HTTPMethod(rawValue: method.rawValue)
        for field in fields { request.headers.add(name: field.name.rawName, value: field.value) }
        if once { request.headers.replaceOrAdd(name: "Connection", value: "close") }
        request.body = body
        do {
            return try await (once ? single : pooled).execute(request, timeout: timeout, logger: logger)
        } catch let error as HTTPClientError where error == .connectTimeout || error == .uncleanShutdown {
            throw error == .connectTimeout ? Failure.notForwarded : Failure.unknown
        } catch is NIOConnectionError {
            throw Failure.notForwarded
        } catch let error as IOError where error.errnoCode == ECONNREFUSED {
            // Only connecting can be refused. Other errors of the socket can come after the request was written.
            throw Failure.notForwarded
        } catch {
            logger.notice("the protected service gave no answer", metadata: ["error": "\(type(of: error))"])
            throw Failure.unknown
        }
    }
}
