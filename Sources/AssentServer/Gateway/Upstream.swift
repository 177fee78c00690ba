import AssentCore
import AssentTransportNIO
import Foundation
import HTTPTypes
import Logging
import NIOCore
import NIOPosix

/// The protected services behind the routes.
struct Upstream: Sendable {
    /// Why there is no reply from a service.
    enum Failure: Error {
        /// It was never reached: nothing can have happened.
        case notForwarded
        /// The request may have reached it: what happened is unknown.
        case unknown
    }

    /// The services of one or more routes that say the same of them.
    private struct Service {
        let settings: UpstreamSettings
        let origins: [Origin]
        let transports: UpstreamTransports
        let limits: HTTPLimits
        /// Which of several is asked next; `nil` for one.
        let pool: Locked<UpstreamPool>?
    }

    private let services: [UpstreamSettings: Service]
    private let transports: [UpstreamTransports]
    private let clock: any WallClock
    private let logger: Logger

    /// Long enough for a reply that streams all day.
    private static let longestExchange = Duration.seconds(24 * 3600)
    private static let longestCheck = 5
    private static let checkBytes = 64 << 10

    /// The services that routes name.
    ///
    /// - Parameters:
    ///   - settings: what the routes say of them.
    ///   - clock: says when a service is tried again, and what certificates are valid.
    ///   - group: where requests are answered.
    ///   - logger: gets a line about each service that does not answer.
    /// - Throws: `WireError` when an address is not one, ``/AssentConfiguration/ConfigurationError`` for a file that
    ///   cannot be used, or `NIOTransportError`.
    init(
        _ settings: some Sequence<UpstreamSettings>, clock: any WallClock = SystemClock(),
        group: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton, logger: Logger
    ) throws {
        let settings = Set(settings)
        var origins: [UpstreamSettings: [Origin]] = [:]
        for one in settings { origins[one] = try one.addresses.map { address in try Origin(headerValue: address) } }
        var transports: [UpstreamSettings.TLS: UpstreamTransports] = [:]
        for (tls, alike) in Dictionary(grouping: settings, by: \.tls) {
            transports[tls] = try UpstreamTransports(
                to: alike.flatMap { origins[$0] ?? [] }, tls, clock: clock, group: group, logger: logger)
        }
        var services: [UpstreamSettings: Service] = [:]
        for one in settings {
            guard let transports = transports[one.tls], let origins = origins[one] else { continue }
            services[one] = Service(
                settings: one, origins: origins, transports: transports, limits: Self.limits(one.timeouts),
                pool: origins.count == 1 ? nil : Locked(Self.pool(one)))
        }
        self.services = services
        self.transports = Array(transports.values)
        self.clock = clock
        self.logger = logger
    }

    private static func pool(_ settings: UpstreamSettings) -> UpstreamPool {
        var rules = UpstreamPool.Rules()
        rules.checkEvery = settings.check.map { TimeInterval($0.everySeconds) }
        return UpstreamPool(count: settings.addresses.count, rules: rules)
    }

    private static func limits(_ timeouts: UpstreamSettings.Timeouts) -> HTTPLimits {
        var limits = HTTPLimits(
            connect: .seconds(timeouts.connect), read: .seconds(timeouts.silence),
            total: timeouts.total.map { .seconds($0) } ?? longestExchange, replyBytes: .max)
        limits.head = .seconds(timeouts.head)
        return limits
    }

    /// Ends all connections.
    func shutdown() async {
        for transport in transports { await transport.shutdown() }
    }

    /// Sends a request to one of the services and returns the reply once its header is there. Another one is tried only
    /// where no connection to the first was made, so that none of the request's bytes has left. A request that only
    /// reads goes on also where a kept connection had ended and there is no other.
    ///
    /// - Parameters:
    ///   - request: method, target and fields; scheme and authority become those of the service.
    ///   - body: the content.
    ///   - settings: the services, as they were given at the start.
    ///   - once: whether it is sent once at most, on a connection of its own.
    /// - Returns: the reply.
    /// - Throws: ``Failure``.
    func forward(
        _ request: HTTPRequest, body: HTTPBody?, to settings: UpstreamSettings, once: Bool
    ) async throws -> HTTPReply {
        guard let service = services[settings] else { throw Failure.notForwarded }
        let order = service.pool.map { pool in pool.withLock { $0.order(at: clock.now) } } ?? [0]
        var mayBeSent = false
        for index in order {
            do {
                let reply = try await service.transports.send(call(request, body, service, index, once: once))
                note(.reached, of: index, service)
                return reply
            } catch let error as HTTPTransportError where error.isWithoutConnection {
                note(.notReached, of: index, service)
                log(error, "the protected service was not reached", service, index)
                // It was sent on a kept connection that had ended, and could not be sent once more.
                guard error.mayHaveHadEffect else { continue }
                mayBeSent = true
                guard Self.safeMethods.contains(request.method) else { throw Failure.unknown }
            } catch let error as HTTPTransportError where !error.mayHaveHadEffect {
                log(error, "the protected service was not reached", service, index)
                // Another one may have room. Whatever else was wrong is so for all of them.
                guard error.code == .tooManyRequests else { throw Self.failure(mayBeSent) }
            } catch {
                note(.reached, of: index, service)
                log(error, "the protected service gave no answer", service, index)
                throw Failure.unknown
            }
        }
        throw Self.failure(mayBeSent)
    }

    private static let safeMethods: Set<HTTPRequest.Method> = [.get, .head, .options]

    private static func failure(_ mayBeSent: Bool) -> Failure { mayBeSent ? .unknown : .notForwarded }

    private func call(
        _ request: HTTPRequest, _ body: HTTPBody?, _ service: Service, _ index: Int, once: Bool
    ) -> HTTPCall {
        var request = request
        request.scheme = service.origins[index].scheme
        request.authority = service.origins[index].authority
        var call = HTTPCall(request, body: body, limits: service.limits)
        call.isSentOnce = once
        return call
    }

    private func log(_ error: any Error, _ message: Logger.Message, _ service: Service, _ index: Int) {
        let text = (error as? HTTPTransportError)?.code.rawValue ?? "\(type(of: error))"
        logger.notice(message, metadata: ["service": "\(service.origins[index])", "error": "\(text)"])
    }

    private func note(_ event: UpstreamPool.Event, of index: Int, _ service: Service) {
        guard let pool = service.pool else { return }
        let metadata: Logger.Metadata = ["service": "\(service.origins[index])"]
        switch pool.withLock({ $0.note(event, of: index, at: clock.now) }) {
        case .leftOut: logger.warning("a service is left out until it can be reached again", metadata: metadata)
        case .backAgain: logger.notice("a service is asked again", metadata: metadata)
        case nil: break
        }
    }
}

// MARK: - Checks

extension Upstream {
    /// Whether any service is asked whether it is well.
    var hasChecks: Bool { services.values.contains { $0.pool != nil && $0.settings.check != nil } }

    /// Asks the services whose turn it is whether they are well, and waits for the answers.
    func check() async {
        await withDiscardingTaskGroup { group in
            for service in services.values {
                guard let pool = service.pool, let check = service.settings.check else { continue }
                for index in pool.withLock({ $0.due(at: clock.now) }) {
                    group.addTask {
                        note(await isWell(service, index, check) ? .checkPassed : .checkFailed, of: index, service)
                    }
                }
            }
        }
    }

    /// A whole answer from 200 to 399 says so. The service is asked on a connection of its own, without anybody's
    /// credentials.
    private func isWell(_ service: Service, _ index: Int, _ check: UpstreamSettings.HealthCheck) async -> Bool {
        let request = HTTPRequest(method: .get, scheme: nil, authority: nil, path: check.path)
        var call = call(request, nil, service, index, once: true)
        let time = Duration.seconds(check.limitSeconds ?? min(check.everySeconds, Self.longestCheck))
        call.limits = HTTPLimits(connect: time, read: time, total: time, replyBytes: Self.checkBytes)
        do {
            let reply = try await service.transports.send(call)
            _ = try await reply.body.collect(upTo: Self.checkBytes)
            return (200..<400).contains(reply.status)
        } catch {
            log(error, "the check of a protected service failed", service, index)
            return false
        }
    }
}

extension HTTPTransportError {
    /// Whether there was no connection, so that none of the call's bytes can have left: refused, too late, or to a
    /// server that is not trusted. What may have had an effect was sent before, on a kept connection that had ended.
    fileprivate var isWithoutConnection: Bool {
        let refused: [Code] = [.nameNotResolved, .connectFailed]
        let codes = refused + [.timedOut, .untrustedServer, .pinMismatch, .tlsFailed]
        return (mayHaveHadEffect ? refused : codes).contains(code)
    }
}
