import AssentAuthorization
import AssentTokens

extension CallKind {
    /// The domain of errors that only calls of this kind have.
    var domain: ResourceError.Domain {
        switch self {
        case .user: .fetchResource
        case .implicit: .fetchImplicitResource
        case .device: .fetchAnonymousResource
        case .nobody: .fetchUnauthenticatedResource
        }
    }

    /// The code for a missing credential of this kind.
    var notAuthenticated: ResourceError.Code {
        switch self {
        case .user: .userNotAuthenticated
        case .implicit: .userNotAuthenticatedImplicitly
        case .device: .deviceNotAuthenticated
        case .nobody: .hostRefused
        }
    }
}
