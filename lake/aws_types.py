"""Types of boto3's clients and answers, for the type checker: at run time their packages are not installed."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient
    from mypy_boto3_glue import GlueClient
    from mypy_boto3_glue.type_defs import JobRunTypeDef
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import (
        CreateBucketConfigurationTypeDef,
        GetObjectOutputTypeDef,
        ListObjectsV2OutputTypeDef,
        MultipartUploadTypeDef,
        ObjectTypeDef,
    )
    from mypy_boto3_sqs import SQSClient
    from typing_extensions import Buffer
else:
    DynamoDBClient = GlueClient = S3Client = SQSClient = Buffer = Any
    JobRunTypeDef = ObjectTypeDef = GetObjectOutputTypeDef = MultipartUploadTypeDef = Any
    ListObjectsV2OutputTypeDef = CreateBucketConfigurationTypeDef = Any
