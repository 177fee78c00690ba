// The server in a program of your own: the last step of the article "First server".
import AssentServer
import Logging
import ServiceLifecycle
import UnixSignals

func serve(logger: Logger) async throws {
    let configuration = try ServerConfiguration.load(file: "assent.yaml")
    let server = try await IdentityServer(configuration: configuration, logger: logger)
    try await ServiceGroup(services: [server], gracefulShutdownSignals: [.sigterm], logger: logger).run()
}
