@_exported public import AssentAuthorization
@_exported public import AssentCore
@_exported public import AssentJOSE
@_exported public import AssentJourney
@_exported public import AssentPlatform
@_exported public import AssentTokens
@_exported public import AssentTransportNIO
@_exported public import AssentVault
